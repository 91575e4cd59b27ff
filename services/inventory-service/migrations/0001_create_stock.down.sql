drop table reservation_lines;
drop table reservations;
drop table stock;
