package site

import "github.com/zincc-dev/zincc/codegen/target/device"

// Tiling describes a tiled matrix product, as far as its time depends on it.
type Tiling = device.Tiling
