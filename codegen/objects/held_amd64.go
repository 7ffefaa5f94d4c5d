package objects

import _ "embed"

//go:embed objects_amd64.zip
var archive []byte
