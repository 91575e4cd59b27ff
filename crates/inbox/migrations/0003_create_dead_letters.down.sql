drop table dead_letter_decisions;
drop table dead_letter_waits;
