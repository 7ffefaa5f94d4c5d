#include "textflag.h"

// func call(fn, stack uintptr, args *[6]uintptr) uintptr
// System V: arguments in DI, SI, DX, CX, R8, R9; BX, BP, R12 to R15 come back as they were.
TEXT ·call(SB), NOSPLIT, $0-32
	MOVQ fn+0(FP), AX
	MOVQ stack+8(FP), R13
	MOVQ args+16(FP), R10
	MOVQ 0(R10), DI
	MOVQ 8(R10), SI
	MOVQ 16(R10), DX
	MOVQ 24(R10), CX
	MOVQ 32(R10), R8
	MOVQ 40(R10), R9
	MOVQ SP, R12
	MOVQ R13, SP
	CALL AX
	MOVQ R12, SP
	MOVQ AX, ret+24(FP)
	RET

// func relaxAddress() uintptr
TEXT ·relaxAddress(SB), NOSPLIT, $0-8
	LEAQ ·relax(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func stampAddress() uintptr
TEXT ·stampAddress(SB), NOSPLIT, $0-8
	LEAQ ·stamp(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// stamp is a kernel.
TEXT ·stamp(SB), NOSPLIT|NOFRAME, $0
	MOVQ 0(DI), DI
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, 0(DI)
	RET
