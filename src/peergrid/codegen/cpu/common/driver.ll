; The loop that carries a program's tables out (see `tables`), the same for all problems.
;
; Tables are rows of 64-bit words. The address of every operand is computed once for the first row of its work; from row
; to row it moves on, and at the end of a rolling window back to its start. `moving` has five rows with a word for each
; operand: address, move per row, the window's limit and length, bytes per line. `band_of`: a node's band of rows now.

; A word of a table.
define internal i64 @get(ptr %table, i64 %columns, i64 %row, i64 %column) alwaysinline {
  %before = mul i64 %row, %columns
  %index = add i64 %before, %column
  %place = getelementptr i64, ptr %table, i64 %index
  %word = load i64, ptr %place
  ret i64 %word
}

define internal void @set(ptr %table, i64 %columns, i64 %row, i64 %column, i64 %word) alwaysinline {
  %before = mul i64 %row, %columns
  %index = add i64 %before, %column
  %place = getelementptr i64, ptr %table, i64 %index
  store i64 %word, ptr %place
  ret void
}

; Fill `moving`; a storage that keeps no window is never at its limit.
define internal void @place(ptr noalias %operands, i64 %count, ptr noalias %storages, i64 %scratch, i64 %moved, ptr noalias %moving) {
start:
  br label %next

next:
  %i = phi i64 [ 0, %start ], [ %i.next, %operand ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %operand, label %done

operand:
  %storage = call i64 @get(ptr %operands, i64 4, i64 %i, i64 0)
  %row = call i64 @get(ptr %operands, i64 4, i64 %i, i64 1)
  %line = call i64 @get(ptr %operands, i64 4, i64 %i, i64 2)
  %cell = call i64 @get(ptr %operands, i64 4, i64 %i, i64 3)
  %base = call i64 @get(ptr %storages, i64 7, i64 %storage, i64 0)
  %row.bytes = call i64 @get(ptr %storages, i64 7, i64 %storage, i64 1)
  %line.bytes = call i64 @get(ptr %storages, i64 7, i64 %storage, i64 2)
  %cell.bytes = call i64 @get(ptr %storages, i64 7, i64 %storage, i64 3)
  %depth = call i64 @get(ptr %storages, i64 7, i64 %storage, i64 4)
  %in.scratch = call i64 @get(ptr %storages, i64 7, i64 %storage, i64 5)
  %moves = call i64 @get(ptr %storages, i64 7, i64 %storage, i64 6)

  %rolls = icmp sgt i64 %depth, 0
  %divisor = select i1 %rolls, i64 %depth, i64 1
  %remainder = srem i64 %row, %divisor
  %below = icmp slt i64 %remainder, 0
  %raised = add i64 %remainder, %divisor
  %modulo = select i1 %below, i64 %raised, i64 %remainder
  %kept = select i1 %rolls, i64 %modulo, i64 %row

  %from.scratch = mul i64 %in.scratch, %scratch
  %from.step = mul i64 %moves, %moved
  %from.line = mul i64 %line, %line.bytes
  %from.cell = mul i64 %cell, %cell.bytes
  %start.1 = add i64 %base, %from.scratch
  %start.2 = add i64 %start.1, %from.step
  %start.3 = add i64 %start.2, %from.line
  %window = add i64 %start.3, %from.cell
  %from.row = mul i64 %kept, %row.bytes
  %address = add i64 %window, %from.row
  %length = mul i64 %depth, %row.bytes
  %end = add i64 %window, %length
  %limit = select i1 %rolls, i64 %end, i64 4611686018427387904

  call void @set(ptr %moving, i64 %count, i64 0, i64 %i, i64 %address)
  call void @set(ptr %moving, i64 %count, i64 1, i64 %i, i64 %row.bytes)
  call void @set(ptr %moving, i64 %count, i64 2, i64 %i, i64 %limit)
  call void @set(ptr %moving, i64 %count, i64 3, i64 %i, i64 %length)
  call void @set(ptr %moving, i64 %count, i64 4, i64 %i, i64 %line.bytes)
  %i.next = add i64 %i, 1
  br label %next

done:
  ret void
}

; Every node begins with its first band.
define internal void @begin(ptr noalias %nodes, i64 %count, ptr noalias %band_of) {
start:
  br label %next

next:
  %i = phi i64 [ 0, %start ], [ %i.next, %node ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %node, label %done

node:
  %first = call i64 @get(ptr %nodes, i64 3, i64 %i, i64 1)
  call void @set(ptr %band_of, i64 1, i64 %i, i64 0, i64 %first)
  %i.next = add i64 %i, 1
  br label %next

done:
  ret void
}

; Move the addresses of some operands by some rows, fewer than a window has. The loop is one for vectors: no address
; depends on another.
define internal void @advance(i64 %rows, i64 %first, i64 %last, ptr noalias %current, ptr noalias %ahead, ptr noalias %limit, ptr noalias %length) {
start:
  br label %next

next:
  %i = phi i64 [ %first, %start ], [ %i.next, %operand ]
  %more = icmp slt i64 %i, %last
  br i1 %more, label %operand, label %done

operand:
  %old = call i64 @get(ptr %current, i64 1, i64 %i, i64 0)
  %move = call i64 @get(ptr %ahead, i64 1, i64 %i, i64 0)
  %most = call i64 @get(ptr %limit, i64 1, i64 %i, i64 0)
  %back = call i64 @get(ptr %length, i64 1, i64 %i, i64 0)
  %by = mul i64 %rows, %move
  %moved = add i64 %old, %by
  %beyond = icmp sge i64 %moved, %most
  %again = sub i64 %moved, %back
  %new = select i1 %beyond, i64 %again, i64 %moved
  call void @set(ptr %current, i64 1, i64 %i, i64 0, i64 %new)
  %i.next = add i64 %i, 1
  br label %next

done:
  ret void
}

; Call the row functions of some works.
define internal void @carry_out(i64 %first, i64 %last, ptr noalias %functions, ptr noalias %works, i64 %count, ptr noalias %moving) {
start:
  br label %next

next:
  %i = phi i64 [ %first, %start ], [ %i.next, %work ]
  %more = icmp slt i64 %i, %last
  br i1 %more, label %work, label %done

work:
  %number = call i64 @get(ptr %works, i64 5, i64 %i, i64 0)
  %operand = call i64 @get(ptr %works, i64 5, i64 %i, i64 1)
  %lines = call i64 @get(ptr %works, i64 5, i64 %i, i64 3)
  %cells = call i64 @get(ptr %works, i64 5, i64 %i, i64 4)
  %address = call i64 @get(ptr %functions, i64 1, i64 %number, i64 0)
  %function = inttoptr i64 %address to ptr
  %pointers = getelementptr i64, ptr %moving, i64 %operand
  %fourth = mul i64 %count, 4
  %line.bytes = getelementptr i64, ptr %pointers, i64 %fourth
  call void %function(ptr %pointers, ptr %line.bytes, i64 %lines, i64 %cells)
  %i.next = add i64 %i, 1
  br label %next

done:
  ret void
}

; Advance all tiles. at_once: rows by which the front moves; moved: bytes from step 0 to the first step in time series;
; scratch: address of the windows; moving: room for the addresses, and behind them for the bands.
define void @stream(ptr noalias %functions, ptr noalias %tiles, i64 %tile.count, ptr noalias %nodes, i64 %node.count, ptr noalias %bands, ptr noalias %works, ptr noalias %operands, i64 %count, ptr noalias %storages, i64 %at_once, i64 %moved, i64 %scratch, ptr noalias %moving) {
start:
  %ahead = getelementptr i64, ptr %moving, i64 %count
  %limit = getelementptr i64, ptr %ahead, i64 %count
  %length = getelementptr i64, ptr %limit, i64 %count
  %lines = getelementptr i64, ptr %length, i64 %count
  %band_of = getelementptr i64, ptr %lines, i64 %count
  call void @place(ptr %operands, i64 %count, ptr %storages, i64 %scratch, i64 %moved, ptr %moving)
  call void @begin(ptr %nodes, i64 %node.count, ptr %band_of)
  br label %tile.next

tile.next:
  %tile = phi i64 [ 0, %start ], [ %tile.after, %tile.end ]
  %tile.more = icmp slt i64 %tile, %tile.count
  br i1 %tile.more, label %tile.begin, label %done

tile.begin:
  %front.first = call i64 @get(ptr %tiles, i64 4, i64 %tile, i64 0)
  %front.last = call i64 @get(ptr %tiles, i64 4, i64 %tile, i64 1)
  %node.first = call i64 @get(ptr %tiles, i64 4, i64 %tile, i64 2)
  %node.last = call i64 @get(ptr %tiles, i64 4, i64 %tile, i64 3)
  br label %front.next

front.next:
  %front = phi i64 [ %front.first, %tile.begin ], [ %front.after, %front.end ]
  %front.more = icmp slt i64 %front, %front.last
  br i1 %front.more, label %node.next, label %tile.end

node.next:
  %node = phi i64 [ %node.first, %front.next ], [ %node.after, %node.end ]
  %node.more = icmp slt i64 %node, %node.last
  br i1 %node.more, label %node.begin, label %front.end

node.begin:  ; as many rows as the front moves, behind it by the node's lag
  %lag = call i64 @get(ptr %nodes, i64 3, i64 %node, i64 0)
  %band.last = call i64 @get(ptr %nodes, i64 3, i64 %node, i64 2)
  %row.first = sub i64 %front, %lag
  %end = add i64 %row.first, %at_once
  br label %row.next

row.next:
  %row = phi i64 [ %row.first, %node.begin ], [ %row.after, %works.end ]
  %row.more = icmp slt i64 %row, %end
  br i1 %row.more, label %band.find, label %node.end

band.find:  ; the next band where this one has ended
  %band.old = call i64 @get(ptr %band_of, i64 1, i64 %node, i64 0)
  %is.band = icmp slt i64 %band.old, %band.last
  br i1 %is.band, label %band.old.end, label %node.end

band.old.end:
  %band.stop = call i64 @get(ptr %bands, i64 6, i64 %band.old, i64 1)
  %ended = icmp sge i64 %row, %band.stop
  %step = zext i1 %ended to i64
  %band = add i64 %band.old, %step
  call void @set(ptr %band_of, i64 1, i64 %node, i64 0, i64 %band)
  %is.last = icmp eq i64 %band, %band.last
  br i1 %is.last, label %node.end, label %band.begin

band.begin:
  %band.first = call i64 @get(ptr %bands, i64 6, i64 %band, i64 0)
  %later = icmp sle i64 %end, %band.first
  br i1 %later, label %node.end, label %works.begin

works.begin:  ; those on several rows at once where all these rows are the band's, else those on one
  %row.now = call i64 @llvm.smax.i64(i64 %row, i64 %band.first)
  %band.end = call i64 @get(ptr %bands, i64 6, i64 %band, i64 1)
  %single.first = call i64 @get(ptr %bands, i64 6, i64 %band, i64 2)
  %single.last = call i64 @get(ptr %bands, i64 6, i64 %band, i64 3)
  %several.first = call i64 @get(ptr %bands, i64 6, i64 %band, i64 4)
  %several.last = call i64 @get(ptr %bands, i64 6, i64 %band, i64 5)
  %are.several = icmp sgt i64 %several.last, %several.first
  %stop = call i64 @llvm.smin.i64(i64 %end, i64 %band.end)
  %all = add i64 %row.now, %at_once
  %fit = icmp sle i64 %all, %stop
  %several = and i1 %are.several, %fit
  %first = select i1 %several, i64 %several.first, i64 %single.first
  %last = select i1 %several, i64 %several.last, i64 %single.last
  %rows = select i1 %several, i64 %at_once, i64 1
  call void @carry_out(i64 %first, i64 %last, ptr %functions, ptr %works, i64 %count, ptr %moving)

  %work.end = call i64 @llvm.smax.i64(i64 %single.last, i64 %several.last)
  %work.last = sub i64 %work.end, 1
  %operand.first = call i64 @get(ptr %works, i64 5, i64 %single.first, i64 1)
  %operand.last = call i64 @get(ptr %works, i64 5, i64 %work.last, i64 2)
  call void @advance(i64 %rows, i64 %operand.first, i64 %operand.last, ptr %moving, ptr %ahead, ptr %limit, ptr %length)
  br label %works.end

works.end:
  %row.after = add i64 %row.now, %rows
  br label %row.next

node.end:
  %node.after = add i64 %node, 1
  br label %node.next

front.end:
  %front.after = add i64 %front, %at_once
  br label %front.next

tile.end:
  %tile.after = add i64 %tile, 1
  br label %tile.next

done:  ; stores past the caches are seen before anything that follows
  fence seq_cst
  ret void
}

declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
