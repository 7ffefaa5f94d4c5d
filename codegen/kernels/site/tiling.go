package site

import "github.com/zincc-dev/zincc/codegen/target/device"

// Tiling describes a tiled matrix product, as far as its time depends on it.
type Tiling = device.Tiling

// Work is what a kernel's time depends on besides its bytes and operations. Families state what they know.
type Work = device.Work
