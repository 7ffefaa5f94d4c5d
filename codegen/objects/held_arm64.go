package objects

import "embed"

//go:embed arm64/*.objects
var held embed.FS
