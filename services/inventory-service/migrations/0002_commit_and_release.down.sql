alter table stock drop column opening;
drop table restocks;
delete from reservation_lines where order_id in (select order_id from reservations where status = 'released');
delete from reservations where status = 'released';
update reservations set status = 'reserved' where status = 'committed';
alter table reservations drop constraint reservations_status_known;
alter table reservations add constraint reservations_status_known
    check (status in ('deciding', 'reserved', 'rejected'));
