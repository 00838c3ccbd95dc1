"""Records of event files as TensorBoard's own code writes them: `python event-files.py > event-files.json`.

Made with tensorboard 2.21.0 and protobuf 7.36.2.
"""

import io
import json

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

EVENTS = [
    {"wallTime": 1700000000.5, "fileVersion": "brain.Event:2"},
    {"wallTime": 1700000001.25, "step": 1, "scalars": [{"tag": "train/loss", "value": 2.302585124969482}]},
    {"wallTime": 0.1, "step": 127, "scalars": [{"tag": "train/lr", "value": 0.0}]},
    {"wallTime": 0.1, "step": 128, "scalars": [{"tag": "a", "value": -1.5}, {"tag": "b", "value": 65504.0}]},
    {"wallTime": 1e9, "step": 2**40 + 5, "scalars": [{"tag": "Genauigkeit, größte", "value": 0.5}]},
    {"wallTime": 1e9, "step": 3, "scalars": [{"tag": "x" * 200, "value": 1.0}]},
    {"wallTime": 1e9, "step": 301, "isRestart": True},
]


def record(event):
    message = Event(wall_time=event["wallTime"], step=event.get("step", 0))
    if "fileVersion" in event:
        message.file_version = event["fileVersion"]
    if "scalars" in event:
        values = [Summary.Value(tag=s["tag"], simple_value=s["value"]) for s in event["scalars"]]
        message.summary.CopyFrom(Summary(value=values))
    if event.get("isRestart"):
        message.session_log.CopyFrom(SessionLog(status=SessionLog.START))
    file = io.BytesIO()
    RecordWriter(file).write(message.SerializeToString())
    return file.getvalue().hex()


print(json.dumps([{"event": event, "hex": record(event)} for event in EVENTS], indent=1, ensure_ascii=False))
