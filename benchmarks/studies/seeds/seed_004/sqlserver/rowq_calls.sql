-- rowq's routines as the executors of seed 004 call them.

-- name: dequeue
exec rowq.DequeueFast N'bench', :batch, N'bench', 600

-- name: complete_one
declare @message_ids nvarchar(max) = concat(N'[', :message, N']');
exec rowq.Complete N'bench', :claim, @message_ids

-- name: complete
exec rowq.Complete N'bench', :claim
