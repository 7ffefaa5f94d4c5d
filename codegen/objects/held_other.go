//go:build !amd64 && !arm64

package objects

import "embed"

var held embed.FS // there is no machine of another architecture
