; The sums of squared changes that the norm of every step begins with, by the tree of `codegen.norm`.
;
; REAL: the fields' type; BLOCKBYTES: two numbers of it. A half block is four cells of each of 24 rows, added one after another; eight half blocks are
; added together, lane by lane, and cells that fill no eight of them one by one.

; The squared changes of a row to the sums of half blocks.
define internal void @add_row(ptr noalias %before, ptr noalias %after, i64 %across, ptr noalias %halves) {
start:
  %whole = and i64 %across, -32
  br label %eight.next

eight.next:
  %cell = phi i64 [ 0, %start ], [ %cell.next, %eight ]
  %eight.more = icmp slt i64 %cell, %whole
  br i1 %eight.more, label %eight, label %one.next

eight:
  %old.place = getelementptr REAL, ptr %before, i64 %cell
  %new.place = getelementptr REAL, ptr %after, i64 %cell
  %half = lshr i64 %cell, 2
  %sums.place = getelementptr REAL, ptr %halves, i64 %half
  %old = load <32 x REAL>, ptr %old.place, align 4
  %new = load <32 x REAL>, ptr %new.place, align 4
  %sums = load <8 x REAL>, ptr %sums.place, align 4
  %change = fsub <32 x REAL> %new, %old
  %c0 = shufflevector <32 x REAL> %change, <32 x REAL> poison, <8 x i32> <i32 0, i32 4, i32 8, i32 12, i32 16, i32 20, i32 24, i32 28>
  %c1 = shufflevector <32 x REAL> %change, <32 x REAL> poison, <8 x i32> <i32 1, i32 5, i32 9, i32 13, i32 17, i32 21, i32 25, i32 29>
  %c2 = shufflevector <32 x REAL> %change, <32 x REAL> poison, <8 x i32> <i32 2, i32 6, i32 10, i32 14, i32 18, i32 22, i32 26, i32 30>
  %c3 = shufflevector <32 x REAL> %change, <32 x REAL> poison, <8 x i32> <i32 3, i32 7, i32 11, i32 15, i32 19, i32 23, i32 27, i32 31>
  %s0 = call <8 x REAL> @llvm.fma.v8SUFFIX(<8 x REAL> %c0, <8 x REAL> %c0, <8 x REAL> %sums)
  %s1 = call <8 x REAL> @llvm.fma.v8SUFFIX(<8 x REAL> %c1, <8 x REAL> %c1, <8 x REAL> %s0)
  %s2 = call <8 x REAL> @llvm.fma.v8SUFFIX(<8 x REAL> %c2, <8 x REAL> %c2, <8 x REAL> %s1)
  %s3 = call <8 x REAL> @llvm.fma.v8SUFFIX(<8 x REAL> %c3, <8 x REAL> %c3, <8 x REAL> %s2)
  store <8 x REAL> %s3, ptr %sums.place, align 4
  %cell.next = add i64 %cell, 32
  br label %eight.next

one.next:
  %x = phi i64 [ %whole, %eight.next ], [ %x.next, %one ]
  %one.more = icmp slt i64 %x, %across
  br i1 %one.more, label %one, label %done

one:
  %x.old.place = getelementptr REAL, ptr %before, i64 %x
  %x.new.place = getelementptr REAL, ptr %after, i64 %x
  %x.half = lshr i64 %x, 2
  %x.sum.place = getelementptr REAL, ptr %halves, i64 %x.half
  %x.old = load REAL, ptr %x.old.place
  %x.new = load REAL, ptr %x.new.place
  %x.sum = load REAL, ptr %x.sum.place
  %x.change = fsub REAL %x.new, %x.old
  %x.added = call REAL @llvm.fma.SUFFIX(REAL %x.change, REAL %x.change, REAL %x.sum)
  store REAL %x.added, ptr %x.sum.place
  %x.next = add i64 %x, 1
  br label %one.next

done:
  ret void
}

; The sum of a band from those of its half blocks: both halves of a block together, leaf k of 256 from every 256th block,
; then the leaves by halves.
define internal double @band(ptr noalias %halves, i64 %blocks) {
start:
  %leaves = alloca [256 x double], align 64
  call void @llvm.memset.p0.i64(ptr %leaves, i8 0, i64 2048, i1 false)
  br label %block.next

block.next:
  %block = phi i64 [ 0, %start ], [ %block.after, %block.add ]
  %block.more = icmp slt i64 %block, %blocks
  br i1 %block.more, label %block.add, label %fold

block.add:
  %first = shl i64 %block, 1
  %left.place = getelementptr REAL, ptr %halves, i64 %first
  %right.place = getelementptr REAL, ptr %left.place, i64 1
  %left = load REAL, ptr %left.place
  %right = load REAL, ptr %right.place
  %both = fadd REAL %left, %right
  %wide = call double @wide(REAL %both)
  %leaf = and i64 %block, 255
  %leaf.place = getelementptr double, ptr %leaves, i64 %leaf
  %leaf.old = load double, ptr %leaf.place
  %leaf.new = fadd double %leaf.old, %wide
  store double %leaf.new, ptr %leaf.place
  %block.after = add i64 %block, 1
  br label %block.next

fold:
  %count = phi i64 [ 128, %block.next ], [ %count.half, %fold.end ]
  br label %lower

lower:
  %i = phi i64 [ 0, %fold ], [ %i.next, %lower ]
  %lower.place = getelementptr double, ptr %leaves, i64 %i
  %upper.place = getelementptr double, ptr %lower.place, i64 %count
  %lower.old = load double, ptr %lower.place
  %upper = load double, ptr %upper.place
  %lower.new = fadd double %lower.old, %upper
  store double %lower.new, ptr %lower.place
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %count
  br i1 %i.more, label %lower, label %fold.end

fold.end:
  %count.half = lshr i64 %count, 1
  %again = icmp sgt i64 %count.half, 0
  br i1 %again, label %fold, label %done

done:
  %sum = load double, ptr %leaves
  ret double %sum
}

; The sum of every band of 24 rows, from the first `across` cells of each row; rows begin with the first of a band. Pitches
; are cells from row to row; halves: room for two sums of each block of eight cells.
define void @sums(ptr noalias %before, i64 %before.pitch, ptr noalias %after, i64 %after.pitch, i64 %rows, i64 %across, ptr noalias %bands, i64 %count, ptr noalias %halves) {
start:
  %rounded = add i64 %across, 7
  %blocks = lshr i64 %rounded, 3
  %halves.bytes = mul i64 %blocks, BLOCKBYTES
  br label %band.next

band.next:
  %band = phi i64 [ 0, %start ], [ %band.after, %band.end ]
  %band.more = icmp slt i64 %band, %count
  br i1 %band.more, label %band.begin, label %done

band.begin:
  call void @llvm.memset.p0.i64(ptr %halves, i8 0, i64 %halves.bytes, i1 false)
  %row.first = mul i64 %band, 24
  %row.24 = add i64 %row.first, 24
  %row.end = call i64 @llvm.smin.i64(i64 %row.24, i64 %rows)
  br label %row.next

row.next:
  %row = phi i64 [ %row.first, %band.begin ], [ %row.after, %row.add ]
  %row.more = icmp slt i64 %row, %row.end
  br i1 %row.more, label %row.add, label %band.end

row.add:
  %old.cell = mul i64 %row, %before.pitch
  %new.cell = mul i64 %row, %after.pitch
  %old.place = getelementptr REAL, ptr %before, i64 %old.cell
  %new.place = getelementptr REAL, ptr %after, i64 %new.cell
  call void @add_row(ptr %old.place, ptr %new.place, i64 %across, ptr %halves)
  %row.after = add i64 %row, 1
  br label %row.next

band.end:
  %sum = call double @band(ptr %halves, i64 %blocks)
  %band.place = getelementptr double, ptr %bands, i64 %band
  store double %sum, ptr %band.place
  %band.after = add i64 %band, 1
  br label %band.next

done:
  ret void
}

declare REAL @llvm.fma.SUFFIX(REAL, REAL, REAL)
declare <8 x REAL> @llvm.fma.v8SUFFIX(<8 x REAL>, <8 x REAL>, <8 x REAL>)
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
