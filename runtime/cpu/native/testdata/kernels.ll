; Kernels for tests, with the calling convention of all kernels:
; void(args, consts, grid, first, end, scratch).

@mask = private unnamed_addr constant [4 x i32] [i32 3, i32 5, i32 7, i32 11], align 16

; mix: for each workgroup w, out[w] = in[(w*7 + consts[0]) % grid[0]]*3 + mask[w%4] with scratch between.
define void @mix(ptr %args, ptr %consts, ptr %grid, i64 %first, i64 %end, ptr %scratch) #0 {
entry:
  %in = load ptr, ptr %args, align 8
  %outp = getelementptr ptr, ptr %args, i64 1
  %out = load ptr, ptr %outp, align 8
  %shift32 = load i32, ptr %consts, align 4
  %shift = zext i32 %shift32 to i64
  %n32 = load i32, ptr %grid, align 4
  %n = zext i32 %n32 to i64
  br label %loop
loop:
  %w = phi i64 [ %first, %entry ], [ %w1, %body ]
  %more = icmp ult i64 %w, %end
  br i1 %more, label %body, label %leave
body:
  %w7 = mul i64 %w, 7
  %at = add i64 %w7, %shift
  %from = urem i64 %at, %n
  %srcp = getelementptr i32, ptr %in, i64 %from
  %src = load i32, ptr %srcp, align 4
  %times = mul i32 %src, 3
  store volatile i32 %times, ptr %scratch, align 4
  %back = load volatile i32, ptr %scratch, align 4
  %lane = and i64 %w, 3
  %maskp = getelementptr i32, ptr @mask, i64 %lane
  %m = load i32, ptr %maskp, align 4
  %sum = add i32 %back, %m
  %dstp = getelementptr i32, ptr %out, i64 %w
  store i32 %sum, ptr %dstp, align 4
  %w1 = add i64 %w, 1
  br label %loop
leave:
  ret void
}

attributes #0 = { nounwind "no-builtins" }
