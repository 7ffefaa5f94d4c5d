//go:build !linux

#include "textflag.h"

#define PATIENCE 2000

// relax is called by the driver with the number of turns so far in R0: the first turns pause,
// later ones let other threads run, of which there may be more than processors. The system's function has
// no arguments.
TEXT ·relax(SB), NOSPLIT|NOFRAME, $0
	MOVD ·yield(SB), R9
	CMP  $PATIENCE, R0
	BLO  rest
	CBZ  R9, rest
	STP.W (R29, R30), -16(RSP)
	BL   (R9)
	LDP.P 16(RSP), (R29, R30)
	RET
rest:
	ISB  $15
	RET
