package objects

import _ "embed"

//go:embed objects_arm64.zip
var archive []byte
