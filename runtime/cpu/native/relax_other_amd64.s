//go:build !linux

#include "textflag.h"

#define PATIENCE 2000

// relax is called by the driver with the number of turns so far in DI: the first turns pause,
// later ones let other threads run, of which there may be more than processors. The system's function has
// no arguments; on Windows it may use 32 bytes of its caller's.
TEXT ·relax(SB), NOSPLIT|NOFRAME, $0
	MOVQ ·yield(SB), AX
	CMPQ DI, $PATIENCE
	JB   rest
	TESTQ AX, AX
	JZ   rest
	SUBQ $40, SP
	CALL AX
	ADDQ $40, SP
	RET
rest:
	PAUSE
	RET
