#include "textflag.h"

// func call(fn, stack uintptr, args *[6]uintptr) uintptr
// AAPCS64: arguments in R0 to R7; R19 to R29 come back as they were. Generated code leaves R28
// alone, where Go's signal handlers look for g.
TEXT ·call(SB), NOSPLIT, $16-32
	MOVD fn+0(FP), R9
	MOVD stack+8(FP), R10
	MOVD args+16(FP), R11
	LDP  0(R11), (R0, R1)
	LDP  16(R11), (R2, R3)
	LDP  32(R11), (R4, R5)
	MOVD RSP, R19
	MOVD R10, RSP
	BL   (R9)
	MOVD R19, RSP
	MOVD R0, ret+24(FP)
	RET

// func relaxAddress() uintptr
TEXT ·relaxAddress(SB), NOSPLIT, $0-8
	MOVD $·relax(SB), R0
	MOVD R0, ret+0(FP)
	RET

// func stampAddress() uintptr
TEXT ·stampAddress(SB), NOSPLIT, $0-8
	MOVD $·stamp(SB), R0
	MOVD R0, ret+0(FP)
	RET

// stamp is a kernel.
TEXT ·stamp(SB), NOSPLIT|NOFRAME, $0
	MOVD (R0), R0
	WORD $0xd53be041 // mrs x1, cntvct_el0
	MOVD R1, (R0)
	RET
