drop table order_lines;
drop table orders;
drop table menu;
