//go:build !unix

package private

import "os"

// checksModes: the folders of a user have lists of who may write them, which modes do not show.
const checksModes = false

func owned(string, os.FileInfo) error { return nil }
