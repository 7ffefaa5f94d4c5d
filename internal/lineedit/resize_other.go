//go:build !unix

package lineedit

import "os"

// resizes tells nothing: the size is asked for with each message.
func resizes() (<-chan os.Signal, func()) { return nil, func() {} }
