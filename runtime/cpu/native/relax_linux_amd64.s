#include "textflag.h"

#define SYS_sched_yield 24
#define PATIENCE 2000

// relax is called by the driver with the number of turns so far in DI: the first turns pause,
// later ones let other threads run, of which there may be more than processors.
TEXT ·relax(SB), NOSPLIT|NOFRAME, $0
	CMPQ DI, $PATIENCE
	JAE  yield
	PAUSE
	RET
yield:
	MOVL $SYS_sched_yield, AX
	SYSCALL
	RET
