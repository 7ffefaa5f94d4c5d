#include "textflag.h"

#define SYS_sched_yield 124
#define PATIENCE 2000

// relax is called by the driver with the number of turns so far in R0: the first turns pause,
// later ones let other threads run, of which there may be more than processors.
TEXT ·relax(SB), NOSPLIT|NOFRAME, $0
	CMP  $PATIENCE, R0
	BHS  yield
	ISB  $15
	RET
yield:
	MOVD $SYS_sched_yield, R8
	SVC
	RET
