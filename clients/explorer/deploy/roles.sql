-- The explorer's users of PostgreSQL, both without a superuser's rights: `muster` owns the database that this is run in, and writes its tables; `muster_serve` reads them.
-- The image runs this when it makes its folder. Elsewhere a superuser does, by psql 15 or later, with both passwords in the environment.
\getenv indexer INDEXER_PASSWORD
\getenv serve SERVE_PASSWORD
create role muster login password :'indexer';
create role muster_serve login password :'serve';
-- Strangers ask by it: a question that would sort the whole database is refused before it fills the disk.
alter role muster_serve set temp_file_limit = '1GB';
alter database :"DBNAME" owner to muster;
-- Of every version's schema, which the indexer makes later. src/api/counted.ts grants the one table that servers write.
alter default privileges for role muster grant usage on schemas to muster_serve;
alter default privileges for role muster grant select on tables to muster_serve;
