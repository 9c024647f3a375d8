"""A gRPC server with methods of bytes: grpc_server.py PORT CERTIFICATE KEY LOG. Debian's python3-grpcio."""
import json
import sys
from concurrent import futures
from pathlib import Path

import grpc

LOG = sys.argv[4]


def note(method, context):
    with open(LOG, "a", encoding="utf-8") as f:
        f.write(json.dumps({"method": method, "metadata": [list(m) for m in context.invocation_metadata()]}) + "\n")


def unary(request, context):
    note("Unary", context)
    said = dict(context.invocation_metadata())
    context.set_trailing_metadata((("x-said", said.get("authorization", "none")),))
    return b"got " + request + b" from " + said.get("authorization", "none").encode()


def both(requests, context):
    note("Both", context)
    for request in requests:
        yield b"echo " + request


def fails(request, context):
    note("Fails", context)
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not " + dict(context.invocation_metadata()).get("authorization", ""))


def large(request, context):
    note("Large", context)
    return request * 2


def main():
    key, certificate = Path(sys.argv[3]).read_bytes(), Path(sys.argv[2]).read_bytes()
    server = grpc.server(futures.ThreadPoolExecutor(64), options=[("grpc.max_receive_message_length", 64 << 20)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", {
        "Unary": grpc.unary_unary_rpc_method_handler(unary), "Both": grpc.stream_stream_rpc_method_handler(both),
        "Fails": grpc.unary_unary_rpc_method_handler(fails), "Large": grpc.unary_unary_rpc_method_handler(large)}),))
    credentials = grpc.ssl_server_credentials([(key, certificate)])
    server.add_secure_port(f"127.0.0.1:{sys.argv[1]}", credentials)
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
