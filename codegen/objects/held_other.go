//go:build !amd64 && !arm64

package objects

var archive []byte // there is no machine of another architecture
