; The results of leaves of a reduction, in the order of `codegen.reductions`. REAL: the type of the values.
;
; kind: 0 sum, 1 sum of squares, 2 maximum, 3 minimum.

; Two values in one; NaN where either is.
define internal double @combine(i64 %kind, double %one, double %two) alwaysinline {
  %sum = fadd double %one, %two
  %nan = fcmp uno double %one, %one
  %larger = fcmp ogt double %one, %two
  %smaller = fcmp olt double %one, %two
  %keep.most = or i1 %nan, %larger
  %keep.least = or i1 %nan, %smaller
  %most = select i1 %keep.most, double %one, double %two
  %least = select i1 %keep.least, double %one, double %two
  %is.most = icmp eq i64 %kind, 2
  %is.least = icmp eq i64 %kind, 3
  %either = select i1 %is.most, double %most, double %sum
  %result = select i1 %is.least, double %least, double %either
  ret double %result
}

; Combine cells, so many bytes apart, one by one with as many results.
define internal void @gather(i64 %kind, ptr noalias %cells, i64 %bytes, i64 %count, ptr noalias %found) {
start:
  %squares = icmp eq i64 %kind, 1
  br label %next

next:
  %i = phi i64 [ 0, %start ], [ %i.next, %cell ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %cell, label %done

cell:
  %offset = mul i64 %i, %bytes
  %place = getelementptr i8, ptr %cells, i64 %offset
  %real = load REAL, ptr %place
  %value = call double @wide(REAL %real)
  %squared = fmul double %value, %value
  %given = select i1 %squares, double %squared, double %value
  %found.place = getelementptr double, ptr %found, i64 %i
  %old = load double, ptr %found.place
  %new = call double @combine(i64 %kind, double %old, double %given)
  store double %new, ptr %found.place
  %i.next = add i64 %i, 1
  br label %next

done:
  ret void
}

; The result of the leaf of each row. values: rows of `count` cells, so many bytes apart; first: the place of their first
; cell in its leaf.
define void @leaves(i64 %kind, double %neutral, ptr noalias %values, i64 %row.bytes, i64 %cell.bytes, i64 %rows, i64 %count, i64 %first, ptr noalias %results) {
start:
  %found = alloca [128 x double], align 64
  %first.class = and i64 %first, 127
  br label %row.next

row.next:
  %row = phi i64 [ 0, %start ], [ %row.after, %row.end ]
  %row.more = icmp slt i64 %row, %rows
  br i1 %row.more, label %row.begin, label %done

row.begin:
  %row.offset = mul i64 %row, %row.bytes
  %cells = getelementptr i8, ptr %values, i64 %row.offset
  br label %clear

clear:
  %c = phi i64 [ 0, %row.begin ], [ %c.next, %clear ]
  %c.place = getelementptr double, ptr %found, i64 %c
  store double %neutral, ptr %c.place
  %c.next = add i64 %c, 1
  %c.more = icmp slt i64 %c.next, 128
  br i1 %c.more, label %clear, label %stretch.next

stretch.next:  ; cells up to the end of the classes, of which only the first stretch may leave some out
  %at = phi i64 [ 0, %clear ], [ %at.next, %stretch ]
  %class = phi i64 [ %first.class, %clear ], [ 0, %stretch ]
  %stretch.more = icmp slt i64 %at, %count
  br i1 %stretch.more, label %stretch, label %lane

stretch:
  %left = sub i64 %count, %at
  %room = sub i64 128, %class
  %length = call i64 @llvm.smin.i64(i64 %left, i64 %room)
  %offset = mul i64 %at, %cell.bytes
  %cell = getelementptr i8, ptr %cells, i64 %offset
  %class.place = getelementptr double, ptr %found, i64 %class
  call void @gather(i64 %kind, ptr %cell, i64 %cell.bytes, i64 %length, ptr %class.place)
  %at.next = add i64 %at, %length
  br label %stretch.next

lane:  ; four neighbouring classes in one
  %l = phi i64 [ 0, %stretch.next ], [ %l.next, %lane ]
  %l.first = shl i64 %l, 2
  %n0.place = getelementptr double, ptr %found, i64 %l.first
  %n1.place = getelementptr double, ptr %n0.place, i64 1
  %n2.place = getelementptr double, ptr %n0.place, i64 2
  %n3.place = getelementptr double, ptr %n0.place, i64 3
  %n0 = load double, ptr %n0.place
  %n1 = load double, ptr %n1.place
  %n2 = load double, ptr %n2.place
  %n3 = load double, ptr %n3.place
  %lower = call double @combine(i64 %kind, double %n0, double %n1)
  %upper = call double @combine(i64 %kind, double %n2, double %n3)
  %four = call double @combine(i64 %kind, double %lower, double %upper)
  %l.place = getelementptr double, ptr %found, i64 %l
  store double %four, ptr %l.place
  %l.next = add i64 %l, 1
  %l.more = icmp slt i64 %l.next, 32
  br i1 %l.more, label %lane, label %fold

fold:  ; 32 results by halves
  %half = phi i64 [ 16, %lane ], [ %half.next, %fold.end ]
  br label %pair

pair:
  %p = phi i64 [ 0, %fold ], [ %p.next, %pair ]
  %p.place = getelementptr double, ptr %found, i64 %p
  %q.place = getelementptr double, ptr %p.place, i64 %half
  %p.value = load double, ptr %p.place
  %q.value = load double, ptr %q.place
  %p.new = call double @combine(i64 %kind, double %p.value, double %q.value)
  store double %p.new, ptr %p.place
  %p.next = add i64 %p, 1
  %p.more = icmp slt i64 %p.next, %half
  br i1 %p.more, label %pair, label %fold.end

fold.end:
  %half.next = lshr i64 %half, 1
  %again = icmp sgt i64 %half.next, 0
  br i1 %again, label %fold, label %row.end

row.end:
  %result = load double, ptr %found
  %result.place = getelementptr double, ptr %results, i64 %row
  store double %result, ptr %result.place
  %row.after = add i64 %row, 1
  br label %row.next

done:
  ret void
}

declare i64 @llvm.smin.i64(i64, i64)
