; The step driver: what every thread runs for a burst of steps, without a call of Go.
; `go generate` compiles it for each machine; native.go has the same structures in Go.
;
; A dispatch is cut into chunks of workgroups. Threads claim chunks by raising a counter, and a group
; of dispatches is over when the workgroups that are done have reached their sum. So no
; thread waits for another that has claimed nothing, and one that comes late passes by.
; Counters only grow: pass number t of a table needs (t+1) times the workgroups. Nobody sets
; them back between passes or calls.

%dispatch = type { ptr, ptr, ptr, ptr, i64, i64, ptr, ptr, i64, [3 x i64] }
; fn, args, consts, grid, workgroups, chunk, claimed, done, need: done counts for all
; dispatches of a group, need is 0 but for the last of them, where it is the workgroups of all.

%control = type { ptr, [7 x i64], i64, [7 x i64], i64, [7 x i64] }
; relax: called with the number of turns so far while a thread waits
; stop: not 0 once the host wants all threads back
; posted: number of the last piece of work, which wait watches

; run makes passes [first, end) over n dispatches. It returns 0, or 1 if it was stopped.
define i64 @run(ptr noalias %table, i64 %n, i64 %first, i64 %end, ptr %scratch, ptr %control) #0 {
entry:
  %relaxp = getelementptr %control, ptr %control, i64 0, i32 0
  %relax = load ptr, ptr %relaxp, align 8
  %stopp = getelementptr %control, ptr %control, i64 0, i32 2
  br label %passes

passes:
  %pass = phi i64 [ %first, %entry ], [ %pass1, %passed ]
  %more = icmp ult i64 %pass, %end
  br i1 %more, label %dispatches, label %finished

dispatches:
  %i = phi i64 [ 0, %passes ], [ %i1, %next ]
  %left = icmp ult i64 %i, %n
  br i1 %left, label %dispatch, label %passed

passed:
  %pass1 = add i64 %pass, 1
  br label %passes

dispatch:
  %d = getelementptr %dispatch, ptr %table, i64 %i
  %fn = load ptr, ptr %d, align 8
  %argsp = getelementptr %dispatch, ptr %d, i64 0, i32 1
  %args = load ptr, ptr %argsp, align 8
  %constsp = getelementptr %dispatch, ptr %d, i64 0, i32 2
  %consts = load ptr, ptr %constsp, align 8
  %gridp = getelementptr %dispatch, ptr %d, i64 0, i32 3
  %grid = load ptr, ptr %gridp, align 8
  %workgroupsp = getelementptr %dispatch, ptr %d, i64 0, i32 4
  %workgroups = load i64, ptr %workgroupsp, align 8
  %chunkp = getelementptr %dispatch, ptr %d, i64 0, i32 5
  %chunk = load i64, ptr %chunkp, align 8
  %claimedpp = getelementptr %dispatch, ptr %d, i64 0, i32 6
  %claimedp = load ptr, ptr %claimedpp, align 8
  %donepp = getelementptr %dispatch, ptr %d, i64 0, i32 7
  %donep = load ptr, ptr %donepp, align 8
  %needp = getelementptr %dispatch, ptr %d, i64 0, i32 8
  %need = load i64, ptr %needp, align 8
  %base = mul i64 %pass, %workgroups
  %target = add i64 %base, %workgroups
  %claimed0 = load atomic i64, ptr %claimedp monotonic, align 8
  br label %claim

claim:
  %claimed = phi i64 [ %claimed0, %dispatch ], [ %seen, %try ], [ %claimed2, %work ]
  %open = icmp ult i64 %claimed, %target
  br i1 %open, label %try, label %claims

try:
  %full = add i64 %claimed, %chunk
  %short = icmp ult i64 %full, %target
  %to = select i1 %short, i64 %full, i64 %target
  %pair = cmpxchg ptr %claimedp, i64 %claimed, i64 %to acquire monotonic, align 8
  %seen = extractvalue { i64, i1 } %pair, 0
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %work, label %claim

work:
  %from = sub i64 %claimed, %base
  %upto = sub i64 %to, %base
  call void %fn(ptr %args, ptr %consts, ptr %grid, i64 %from, i64 %upto, ptr %scratch)
  %count = sub i64 %to, %claimed
  %before = atomicrmw add ptr %donep, i64 %count release, align 8
  %claimed2 = load atomic i64, ptr %claimedp monotonic, align 8
  br label %claim

claims:
  %joins = icmp eq i64 %need, 0
  br i1 %joins, label %next, label %group

group:
  %pass2 = add i64 %pass, 1
  %goal = mul i64 %pass2, %need
  br label %check

check:
  %turns = phi i64 [ 0, %group ], [ %turns1, %again ]
  %done = load atomic i64, ptr %donep acquire, align 8
  %over = icmp uge i64 %done, %goal
  br i1 %over, label %look, label %waiting

waiting:
  %stop = load atomic i64, ptr %stopp monotonic, align 8
  %leave = icmp ne i64 %stop, 0
  br i1 %leave, label %stopped, label %again

again:
  call void %relax(i64 %turns)
  %turns1 = add i64 %turns, 1
  br label %check

look:
  %stop2 = load atomic i64, ptr %stopp monotonic, align 8
  %leave2 = icmp ne i64 %stop2, 0
  br i1 %leave2, label %stopped, label %next

next:
  %i1 = add i64 %i, 1
  br label %dispatches

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
