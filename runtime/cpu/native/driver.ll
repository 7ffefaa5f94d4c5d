; The step driver: what every thread runs for a burst of steps, without a call of Go.
; `go generate` compiles it for each machine; native.go has the same structures in Go.
;
; A dispatch is cut into chunks of workgroups, which threads own in turn: the same in every pass, so that a thread reads the same
; weights again. A thread claims its chunks one by one, and counts the workgroups that it has done on a line of the caches that only it
; writes, at the end of a step: others look at that line all the time. A step is over when these counts add up to the workgroups of the table so far. A thread that waits for long
; takes chunks of others; if there were some, their owner has been taken away, and it waits for a shorter time at the next steps. So
; no thread waits for another that has claimed nothing, and one that comes late passes by.
; Counters only grow: pass number t begins at t times the workgroups. Nobody sets them back between passes or calls.

%dispatch = type { ptr, ptr, ptr, ptr, i64, i64, i64, i64, ptr, i64, [2 x i64] }
; fn, args, consts, grid, workgroups, chunk, rounds, extra, claimed, over: a thread owns so many chunks as there are rounds, the first
; ones, as extra says, one more. claimed counts chunks for thread 0; those of other threads follow at the stride. over is 0 but for
; the last dispatch of a step, where it is the workgroups of the table up to it.

%program = type { ptr, i64, ptr, i64, i64, i64 }
; dispatches, how many, done, threads, stride, workgroups of a pass: done counts for thread 0; those of others follow at 128 bytes.

%control = type { ptr, [7 x i64], i64, [7 x i64], i64, [7 x i64] }
; relax: called with the number of turns so far while a thread waits
; stop: not 0 once the host wants all threads back
; posted: number of the last piece of work, which wait watches

; take runs the chunks of a dispatch that a thread owns and nobody has claimed, and returns how many workgroups they had.
define internal i64 @take(ptr %d, i64 %owner, i64 %pass, ptr %program, ptr %scratch) #0 {
entry:
  %roundsp = getelementptr %dispatch, ptr %d, i64 0, i32 6
  %rounds = load i64, ptr %roundsp, align 8
  %extrap = getelementptr %dispatch, ptr %d, i64 0, i32 7
  %extra = load i64, ptr %extrap, align 8
  %more = icmp ult i64 %owner, %extra
  %one = zext i1 %more to i64
  %size = add i64 %rounds, %one
  %none = icmp eq i64 %size, 0
  br i1 %none, label %done, label %owns

owns:
  %base = mul i64 %pass, %size
  %target = add i64 %base, %size
  %stridep = getelementptr %program, ptr %program, i64 0, i32 4
  %stride = load i64, ptr %stridep, align 8
  %claimedpp = getelementptr %dispatch, ptr %d, i64 0, i32 8
  %claimed00 = load ptr, ptr %claimedpp, align 8
  %offset = mul i64 %owner, %stride
  %claimedp = getelementptr i8, ptr %claimed00, i64 %offset
  %claimed0 = load atomic i64, ptr %claimedp monotonic, align 8
  br label %claim

claim:
  %claimed = phi i64 [ %claimed0, %owns ], [ %seen, %try ], [ %claimed2, %work ]
  %sum = phi i64 [ 0, %owns ], [ %sum, %try ], [ %sum1, %work ]
  %open = icmp ult i64 %claimed, %target
  br i1 %open, label %try, label %done

try:
  %to = add i64 %claimed, 1
  %pair = cmpxchg ptr %claimedp, i64 %claimed, i64 %to acquire monotonic, align 8
  %seen = extractvalue { i64, i1 } %pair, 0
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %work, label %claim

work:
  %threadsp = getelementptr %program, ptr %program, i64 0, i32 3
  %threads = load i64, ptr %threadsp, align 8
  %round = sub i64 %claimed, %base
  %before = mul i64 %round, %threads
  %number = add i64 %before, %owner
  %chunkp = getelementptr %dispatch, ptr %d, i64 0, i32 5
  %chunk = load i64, ptr %chunkp, align 8
  %workgroupsp = getelementptr %dispatch, ptr %d, i64 0, i32 4
  %workgroups = load i64, ptr %workgroupsp, align 8
  %from = mul i64 %number, %chunk
  %full = add i64 %from, %chunk
  %short = icmp ult i64 %full, %workgroups
  %end = select i1 %short, i64 %full, i64 %workgroups
  %fn = load ptr, ptr %d, align 8
  %argsp = getelementptr %dispatch, ptr %d, i64 0, i32 1
  %args = load ptr, ptr %argsp, align 8
  %constsp = getelementptr %dispatch, ptr %d, i64 0, i32 2
  %consts = load ptr, ptr %constsp, align 8
  %gridp = getelementptr %dispatch, ptr %d, i64 0, i32 3
  %grid = load ptr, ptr %gridp, align 8
  call void %fn(ptr %args, ptr %consts, ptr %grid, i64 %from, i64 %end, ptr %scratch)
  %count = sub i64 %end, %from
  %sum1 = add i64 %sum, %count
  %claimed2 = load atomic i64, ptr %claimedp monotonic, align 8
  br label %claim

done:
  %all = phi i64 [ 0, %entry ], [ %sum, %claim ]
  ret i64 %all
}

; count adds what was done at mine, if anything was: a store takes the line from those who look at it.
define internal void @count(ptr %mine, i64 %workgroups) #0 {
  %none = icmp eq i64 %workgroups, 0
  br i1 %none, label %done, label %some

some:
  %had = load atomic i64, ptr %mine monotonic, align 8
  %has = add i64 %had, %workgroups
  store atomic i64 %has, ptr %mine release, align 8
  br label %done

done:
  ret void
}

; run makes passes [first, end) over a program. It returns 0, or 1 if it was stopped.
define i64 @run(ptr noalias %program, i64 %first, i64 %end, i64 %thread, ptr %scratch, ptr %control) #0 {
entry:
  %table = load ptr, ptr %program, align 8
  %np = getelementptr %program, ptr %program, i64 0, i32 1
  %n = load i64, ptr %np, align 8
  %donepp = getelementptr %program, ptr %program, i64 0, i32 2
  %donep = load ptr, ptr %donepp, align 8
  %threadsp = getelementptr %program, ptr %program, i64 0, i32 3
  %threads = load i64, ptr %threadsp, align 8
  %totalp = getelementptr %program, ptr %program, i64 0, i32 5
  %total = load i64, ptr %totalp, align 8
  %line = shl i64 %thread, 7
  %mine = getelementptr i8, ptr %donep, i64 %line
  %relaxp = getelementptr %control, ptr %control, i64 0, i32 0
  %relax = load ptr, ptr %relaxp, align 8
  %stopp = getelementptr %control, ptr %control, i64 0, i32 2
  %patience = alloca i64, align 8
  store i64 63, ptr %patience, align 8
  br label %passes

passes:
  %pass = phi i64 [ %first, %entry ], [ %pass1, %passed ]
  %more = icmp ult i64 %pass, %end
  br i1 %more, label %dispatches, label %finished

; step is the first dispatch of the step, sum what was done in it.
dispatches:
  %i = phi i64 [ 0, %passes ], [ %i1, %joins ], [ %i1, %over ]
  %step = phi i64 [ 0, %passes ], [ %step, %joins ], [ %i1, %over ]
  %sum = phi i64 [ 0, %passes ], [ %sum1, %joins ], [ 0, %over ]
  %left = icmp ult i64 %i, %n
  br i1 %left, label %dispatch, label %passed

passed:
  %pass1 = add i64 %pass, 1
  br label %passes

dispatch:
  %d = getelementptr %dispatch, ptr %table, i64 %i
  %i1 = add i64 %i, 1
  %took = call i64 @take(ptr %d, i64 %thread, i64 %pass, ptr %program, ptr %scratch)
  %sum1 = add i64 %sum, %took
  %overp = getelementptr %dispatch, ptr %d, i64 0, i32 9
  %need = load i64, ptr %overp, align 8
  %none = icmp eq i64 %need, 0
  br i1 %none, label %joins, label %wait

joins:
  br label %dispatches

wait:
  call void @count(ptr %mine, i64 %sum1)
  %base = mul i64 %pass, %total
  %goal = add i64 %base, %need
  br label %check

check:
  %turns = phi i64 [ 0, %wait ], [ %turns1, %again ]
  br label %add

add:
  %t = phi i64 [ 0, %check ], [ %t1, %add ]
  %have = phi i64 [ 0, %check ], [ %have1, %add ]
  %at = shl i64 %t, 7
  %onep = getelementptr i8, ptr %donep, i64 %at
  %one = load atomic i64, ptr %onep acquire, align 8
  %have1 = add i64 %have, %one
  %t1 = add i64 %t, 1
  %others = icmp ult i64 %t1, %threads
  br i1 %others, label %add, label %added

added:
  %stop = load atomic i64, ptr %stopp monotonic, align 8
  %leave = icmp ne i64 %stop, 0
  br i1 %leave, label %stopped, label %look

look:
  %enough = icmp uge i64 %have1, %goal
  br i1 %enough, label %over, label %waiting

over:
  br label %dispatches

; One turn of 64 looks for work of others: the last, or where there was some before the 16th, for which a thread that is there is never late.
waiting:
  %turn = and i64 %turns, 63
  %at_turn = load i64, ptr %patience, align 8
  %long = icmp eq i64 %turn, %at_turn
  br i1 %long, label %helps, label %again

helps:
  br label %help

help:
  %j = phi i64 [ %step, %helps ], [ %j1, %helped ]
  %helped0 = phi i64 [ 0, %helps ], [ %helped2, %helped ]
  %h = getelementptr %dispatch, ptr %table, i64 %j
  br label %owners

owners:
  %o = phi i64 [ 0, %help ], [ %o1, %owners ]
  %helped1 = phi i64 [ %helped0, %help ], [ %helped2, %owners ]
  %gave = call i64 @take(ptr %h, i64 %o, i64 %pass, ptr %program, ptr %scratch)
  %helped2 = add i64 %helped1, %gave
  %o1 = add i64 %o, 1
  %owned = icmp ult i64 %o1, %threads
  br i1 %owned, label %owners, label %helped

helped:
  %j1 = add i64 %j, 1
  %rest = icmp ult i64 %j, %i
  br i1 %rest, label %help, label %helpdone

helpdone:
  %none_taken = icmp eq i64 %helped2, 0
  call void @count(ptr %mine, i64 %helped2)
  %patience1 = select i1 %none_taken, i64 63, i64 15
  store i64 %patience1, ptr %patience, align 8
  br label %again

again:
  call void %relax(i64 %turns)
  %turns1 = add i64 %turns, 1
  br label %check

finished:
  ret i64 0

stopped:
  ret i64 1
}

; wait returns once posted is no longer seen, or after so many turns: the number that was posted.
define i64 @wait(ptr %control, i64 %seen, i64 %turns) #0 {
entry:
  %relaxp = getelementptr %control, ptr %control, i64 0, i32 0
  %relax = load ptr, ptr %relaxp, align 8
  %postedp = getelementptr %control, ptr %control, i64 0, i32 4
  br label %check

check:
  %turn = phi i64 [ 0, %entry ], [ %turn1, %again ]
  %posted = load atomic i64, ptr %postedp acquire, align 8
  %same = icmp eq i64 %posted, %seen
  %more = icmp ult i64 %turn, %turns
  %on = and i1 %same, %more
  br i1 %on, label %again, label %leave

again:
  call void %relax(i64 %turn)
  %turn1 = add i64 %turn, 1
  br label %check

leave:
  ret i64 %posted
}

attributes #0 = { nounwind "no-builtins" }
