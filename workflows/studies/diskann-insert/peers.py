#!/usr/bin/env python3
"""One vector index from a Python wheel, as that of a trial of `insert-diskann peer`.

    peers.py PEER --data=FOLDER [--insert-list=128]

It says `ready` when its index of the first vectors is built, and then answers a line per line: `insert N` with seconds, `search L` with
seconds and the recall of each query, `memory` with bytes. workloads/insert/diskann/src/peers/mod.rs has the whole of it. Every call is
for one vector and one thread, as an insert is; what a call costs in Python is a microsecond or two and part of the peer's time.
"""
import argparse
import json
import pathlib
import sys
import tempfile
import time

import numpy

# Neighbours per node.
NEIGHBOURS = 16


class FaissHnsw:
    """faiss.IndexHNSWFlat, in memory."""

    def __init__(self, dims, folder, insert_list):
        import faiss

        faiss.omp_set_num_threads(1)
        self.index = faiss.IndexHNSWFlat(dims, NEIGHBOURS)
        self.index.hnsw.efConstruction = insert_list

    def insert(self, number, vector):
        self.index.add(vector[None, :])

    def search(self, query, k, width):
        self.index.hnsw.efSearch = width
        return self.index.search(query[None, :], k)[1][0] + 1


class Usearch:
    """usearch.index.Index with 32-bit floats, in memory."""

    def __init__(self, dims, folder, insert_list):
        from usearch.index import Index

        self.index = Index(
            ndim=dims, metric="l2sq", dtype="f32", connectivity=NEIGHBOURS, expansion_add=insert_list
        )

    def insert(self, number, vector):
        self.index.add(number, vector, threads=1)

    def search(self, query, k, width):
        self.index.expansion_search = width
        return self.index.search(query, k, threads=1).keys


class SqliteVec:
    """A vec0 table of sqlite-vec in a file; its search is exact, whatever the list."""

    def __init__(self, dims, folder, insert_list):
        import apsw
        import sqlite_vec

        self.connection = apsw.Connection(f"{folder}/vectors.db")
        self.connection.enable_load_extension(True)
        self.connection.load_extension(sqlite_vec.loadable_path())
        self.connection.execute("PRAGMA journal_mode = wal; PRAGMA synchronous = normal")
        self.connection.execute(f"CREATE VIRTUAL TABLE vectors USING vec0(embedding float[{dims}])")

    def insert(self, number, vector):
        self.connection.execute("INSERT INTO vectors(rowid, embedding) VALUES(?, ?)", (number, vector.tobytes()))

    def search(self, query, k, width):
        sql = "SELECT rowid FROM vectors WHERE embedding MATCH ? AND k = ? ORDER BY distance"
        return [row[0] for row in self.connection.execute(sql, (query.tobytes(), k))]


PEERS = {"faiss-hnsw": FaissHnsw, "usearch": Usearch, "sqlite-vec": SqliteVec}


def anonymous_bytes():
    """Memory of this process that is backed by no file."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("this system does not tell a process its memory")


def answer(name, data, insert_list, say):
    """Builds the index `name` of the vectors in the folder `data`, and answers until standard input ends."""
    sizes = json.loads((data / "data.json").read_text())
    dims, size, k = sizes["dims"], sizes["size"], sizes["k"]
    # Mapped, so that the vectors themselves are no memory of the index.
    vectors = numpy.memmap(data / "vectors.f32", dtype="<f4", mode="r").reshape(-1, dims)
    queries = numpy.fromfile(data / "queries.f32", dtype="<f4").reshape(-1, dims)
    truth = [set(ids) for ids in numpy.fromfile(data / "truth.u32", dtype="<u4").reshape(-1, k).tolist()]

    with tempfile.TemporaryDirectory() as folder:
        before = anonymous_bytes()
        peer = PEERS[name](dims, folder, insert_list)
        for at in range(size):
            peer.insert(at + 1, vectors[at])
        say("ready")
        following = size
        for line in sys.stdin:
            word, _, number = line.strip().partition(" ")
            if word == "insert":
                chosen = numpy.array(vectors[following : following + int(number)])
                if len(chosen) != int(number):
                    raise SystemExit(f"{line.strip()}: {len(chosen)} vectors are left")
                start = time.perf_counter()
                for at, vector in enumerate(chosen, following + 1):
                    peer.insert(at, vector)
                say(time.perf_counter() - start)
                following += len(chosen)
            elif word == "search":
                start = time.perf_counter()
                found = [peer.search(query, k, int(number)) for query in queries]
                seconds = time.perf_counter() - start
                say(seconds, *(len(true.intersection(map(int, ids))) / k for true, ids in zip(truth, found)))
            elif word == "memory":
                say(max(anonymous_bytes() - before, 0))
            else:
                raise SystemExit(f"{line.strip()}: insert N, search L and memory are known")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--insert-list", default=128, type=int, help="candidates that an insert keeps")
    given = parser.parse_args()
    answer(given.peer, given.data, given.insert_list, lambda *words: print(*words, flush=True))
