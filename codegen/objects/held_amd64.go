package objects

import "embed"

//go:embed amd64/*.objects
var held embed.FS
