"""An OpenTelemetry collector: a server of OTLP over HTTP that reads what it is sent with OpenTelemetry's own package."""
import importlib
import sys

from helpers import pypi
from helpers.hook import Hook
from helpers.runner import wait_for

PACKAGES = ("opentelemetry-proto==1.45.2",)


def parser(signal, request):
    """The message of that name, from the official package, which is installed where it is missing."""
    folder = str(pypi.modules(*PACKAGES))
    if folder not in sys.path:
        sys.path.append(folder)
    module = importlib.import_module(f"opentelemetry.proto.collector.{signal}.v1.{signal}_service_pb2")
    return getattr(module, request)


def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


def attributes(of):
    assert len({a.key for a in of}) == len(of), of
    return {a.key: value(a.value) for a in of}


class Collector(Hook):
    @property
    def base(self):
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def posts(self, path):
        with self.lock:
            return [told for told in self.told if told.path == path]

    def read(self, path, signal, request):
        message = parser(signal, request)
        out = []
        for told in self.posts(path):
            one = message()
            assert one.ParseFromString(told.body) == len(told.body)
            assert told.headers["Content-Type"] == "application/x-protobuf", told.headers
            out.append(one)
        return out

    def spans(self):
        """Every span so far, each with its attributes as a dictionary."""
        out = []
        for request in self.read("/v1/traces", "trace", "ExportTraceServiceRequest"):
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    assert scope.scope.name == "cloche"
                    out += [Span(span, attributes(resource.resource.attributes)) for span in scope.spans]
        return out

    def metrics(self):
        """The newest report of each part of the daemon: {part: {name: metric}}."""
        out = {}
        for request in self.read("/v1/metrics", "metrics", "ExportMetricsServiceRequest"):
            for resource in request.resource_metrics:
                part = attributes(resource.resource.attributes)["cloche.part"]
                names = [metric.name for scope in resource.scope_metrics for metric in scope.metrics]
                assert len(names) == len(set(names)), names
                out[part] = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
        return out

    def wait_spans(self, name, n=1, patience=60):
        """@n spans of that name, when there are so many."""
        found = []

        def there():
            found[:] = [span for span in self.spans() if span.name == name]
            return len(found) >= n
        assert wait_for(there, patience), (name, n, [span.name for span in self.spans()])
        return found


class Span:
    def __init__(self, span, resource):
        self.raw, self.resource, self.name = span, resource, span.name
        self.trace, self.id, self.parent = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
        self.begin, self.end = span.start_time_unix_nano, span.end_time_unix_nano
        self.notes = attributes(span.attributes)
        self.failed = span.status.code == 2

    def __repr__(self):
        return f"<{self.name} {self.trace}/{self.parent}>{self.id} {self.notes}>"
