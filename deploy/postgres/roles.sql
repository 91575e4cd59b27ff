-- A database and a role for each service, and a role for the publisher. Run once, by psql, as the server's superuser, on
-- an empty data folder; tables are the services' own migrations.
--
-- Passwords come from the environment. Without one the server does not start.
\getenv order_service ORDER_SERVICE_PASSWORD
\getenv inventory_service INVENTORY_SERVICE_PASSWORD
\getenv payment_service PAYMENT_SERVICE_PASSWORD
\getenv payment_gateway PAYMENT_GATEWAY_PASSWORD
\getenv outbox_publisher OUTBOX_PUBLISHER_PASSWORD

create role order_service login password :'order_service';
create role inventory_service login password :'inventory_service';
create role payment_service login password :'payment_service';
create role payment_gateway login password :'payment_gateway';
create role outbox_publisher login password :'outbox_publisher';

create database order_service owner order_service;
create database inventory_service owner inventory_service;
create database payment_service owner payment_service;
create database payment_gateway owner payment_gateway;

-- By default anybody may connect to any database. Of the services, each keeps to its own.
revoke all on database order_service, inventory_service, payment_service, payment_gateway, postgres, template1
    from public;

-- The publisher makes and drops the outboxes' daily partitions, which only the owner of the table may do: there is no
-- right for that alone. What it makes belongs to the service, as if the service had made it; a partition of another
-- owner would stop the service's next migration.
grant order_service, inventory_service, payment_service to outbox_publisher;
alter role outbox_publisher in database order_service set role to order_service;
alter role outbox_publisher in database inventory_service set role to inventory_service;
alter role outbox_publisher in database payment_service set role to payment_service;
