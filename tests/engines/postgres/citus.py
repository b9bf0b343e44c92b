"""A Citus cluster for the tests: given by a URL, or three containers where Docker can pull them."""

import os
import shlex
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import psycopg
from docker.errors import DockerException
from psycopg import sql
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from rowq.tools.engines.postgres.citus.nodes import Node, nodes_of, url_of
from tests.engines.base import Unavailable, wait_until
from tests.engines.docker import first_line, require_docker
from tests.engines.postgres.server import with_database

URL = "ROWQ_TEST_CITUS_URL"
BREAK = "ROWQ_TEST_CITUS_BREAK"
"""A command that ends a node of the given cluster by `kill PORT`, and brings it back by `start`."""
IMAGE = "citusdata/citus:13.2"


class Cluster:
    """A cluster whose nodes are in the pg_dist_node of one database of its coordinator.

    Attributes:
        how: where it comes from, for a report.
        nodes: all of them, the coordinator first, as that database knows them.
    """

    def __init__(
        self,
        url: str,
        how: str,
        breaker: Callable[[str, Node], None] | None,
        stop: Callable[[], None],
    ) -> None:
        """Keep what ends a node and brings it back, and what stops all."""
        self.how = how
        self._url = url
        self._break = breaker
        self._stop = stop
        self._databases: list[str] = []
        self.nodes = nodes_of(url)

    @property
    def can_break(self) -> bool:
        """Whether a node can be killed and brought back."""
        return self._break is not None

    def fresh_database(self, but: int = 0) -> str:
        """Make a database with the extension on every node, and return the coordinator's URL.

        The last nodes, as many as `but` says, are not yet in the cluster.
        """
        name = f"rowq_test_{uuid.uuid4().hex[:12]}"
        self._databases.append(name)
        create = sql.SQL("create database {} template template0 encoding 'UTF8'")
        for node in self.nodes:
            with psycopg.connect(node.url, autocommit=True) as connection:
                # Citus has the other nodes make it, too, where it may.
                connection.execute("set citus.enable_create_database_propagation to off")
                connection.execute(create.format(sql.Identifier(name)))
            with psycopg.connect(with_database(node.url, name), autocommit=True) as connection:
                connection.execute("create extension citus")
        made = with_database(self._url, name)
        with psycopg.connect(made, autocommit=True) as connection:
            for node in self.nodes[: len(self.nodes) - but]:
                host, port = address(node)
                if node.is_coordinator:
                    connection.execute("select citus_set_coordinator_host(%s, %s)", [host, port])
                else:
                    connection.execute("select citus_add_node(%s, %s)", [host, port])
        return made

    def drop_database(self, url: str) -> None:
        """Drop a database of fresh_database on every node."""
        name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
        drop = sql.SQL("drop database if exists {} with (force)")
        for node in self.nodes:
            with psycopg.connect(node.url, autocommit=True) as connection:
                connection.execute("set citus.enable_create_database_propagation to off")
                connection.execute(drop.format(sql.Identifier(name)))
        self._databases.remove(name)

    def kill(self, node: Node) -> None:
        """End a node at once."""
        assert self._break is not None
        self._break("kill", node)

    def start(self, node: Node) -> None:
        """Bring a node back, and wait until it answers."""
        assert self._break is not None
        self._break("start", node)
        wait_until(lambda: _answers(node.url), f"{node.name} answers", 60)

    def close(self) -> None:
        """Drop what was made, and stop what was started."""
        for name in list(self._databases):
            self.drop_database(with_database(self._url, name))
        self._stop()


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Find a cluster for the length of a block; raises Unavailable with every reason."""
    if url := os.environ.get(URL):
        found = _given(url)
    else:
        try:
            require_docker()
            found = _in_containers()
        except Unavailable as reason:
            raise Unavailable(f"{URL} is not set; {reason}") from None
    try:
        yield found
    finally:
        found.close()


def _given(url: str) -> Cluster:
    words = shlex.split(os.environ.get(BREAK, ""))

    def break_by_command(what: str, node: Node) -> None:
        subprocess.run([*words, what, str(address(node)[1])], check=True)

    return Cluster(
        url,
        "given URL",
        break_by_command if words else None,
        lambda: None,
    )


def _in_containers() -> Cluster:
    """Start a coordinator and two workers in a network of their own."""
    with ExitStack() as stack:
        try:
            network = stack.enter_context(Network())
            started = {
                name: stack.enter_context(
                    DockerContainer(IMAGE)
                    .with_network(network)
                    .with_network_aliases(name)
                    .with_kwargs(hostname=name)
                    .with_env("POSTGRES_HOST_AUTH_METHOD", "trust")
                    .with_exposed_ports(5432)
                )
                for name in ("coordinator", "worker1", "worker2")
            }
        except (DockerException, TimeoutError) as error:
            raise Unavailable(f"image {IMAGE} did not start: {first_line(error)}") from None
        # The nodes call each other by these names, which this side has to reach, too.
        addresses = {
            name: _address_in(one.get_wrapped_container(), network.name)
            for name, one in started.items()
        }
        urls = {name: f"postgresql://postgres@{host}/postgres" for name, host in addresses.items()}
        for url in urls.values():
            wait_until(partial(_answers, url), f"{IMAGE} answers", 60)
        with psycopg.connect(urls["coordinator"], autocommit=True) as connection:
            connection.execute(
                "select citus_set_coordinator_host(%s, 5432)", [addresses["coordinator"]]
            )
            for name in ("worker1", "worker2"):
                connection.execute("select citus_add_node(%s, 5432)", [addresses[name]])
        by_address = {addresses[name]: one for name, one in started.items()}

        def break_container(what: str, node: Node) -> None:
            wrapped = by_address[address(node)[0]].get_wrapped_container()
            wrapped.kill() if what == "kill" else wrapped.start()

        kept = stack.pop_all()
        return Cluster(
            urls["coordinator"],
            f"three containers of {IMAGE}",
            break_container,
            kept.close,
        )


def _address_in(container: Any, network: str) -> str:
    """Return the address of a container in a network, which its host reaches, too."""
    container.reload()
    return str(container.attrs["NetworkSettings"]["Networks"][network]["IPAddress"])


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def address(node: Node) -> tuple[str, int]:
    """Return host and port of a node."""
    host, _, port = node.name.rpartition(":")
    return host, int(port)


def on_node(url: str, node: Node) -> str:
    """Return the URL of a database on another node than the coordinator."""
    return url if node.is_coordinator else url_of(url, *address(node))
