#include "textflag.h"

// func flushCaches(from, end uintptr)
// Arm Architecture Reference Manual, B2.7.4: clean data to the point of unification, then
// invalidate instructions, in steps of the smallest line, 16 bytes.
TEXT ·flushCaches(SB), NOSPLIT, $0-16
	MOVD from+0(FP), R0
	MOVD end+8(FP), R1
	MOVD R0, R2
clean:
	CMP  R1, R2
	BHS  cleaned
	WORD $0xd50b7b22 // dc cvau, x2
	ADD  $16, R2
	B    clean
cleaned:
	DMB  $0xb
	DSB  $0xb
	MOVD R0, R2
invalidate:
	CMP  R1, R2
	BHS  done
	WORD $0xd50b7522 // ic ivau, x2
	ADD  $16, R2
	B    invalidate
done:
	DSB  $0xb
	ISB  $15
	RET
