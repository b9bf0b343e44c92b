# !/bin/sh Print the script that installs rowq on MariaDB and MySQL like "rowq migrate", with only a
# shell and awk. Run it with: sh sql/mysql/install.sh | mariadb --comments, or | mysql --comments.
# The procedures run as the new account rowq_owner@localhost, or with --without-owner as the
# installing account. After an error, run all of it again.
set -eu
case ${1-} in
    "") owner=rowq_owner ;;
    --without-owner) owner= ;;
    *) echo "usage: sh install.sh [--without-owner]" >&2; exit 2 ;;
esac
cd "$(dirname "$0")"
exec awk -v owner="$owner" '
    function from(file, line, state) {
        if (!owner) sub(/\/owner\.sql$/, "/caller.sql", file)
        while ((state = (getline line < file)) > 0) {
            if (owner && file != "grants.sql")
                sub(/^create procedure rowq\./, \
                    "create definer = \047" owner "\047@\047localhost\047 procedure rowq.", line)
            print line
        }
        close(file)
        if (state < 0) {
            print "select `" file " is missing`;"
            exit 1
        }
    }
    /^-- source / { from($3); next }
    { print }
' install.sql
