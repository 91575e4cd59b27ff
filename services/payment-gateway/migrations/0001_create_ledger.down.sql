drop table attempts;
drop table answers;
drop table ledger;
drop table authorizations;
