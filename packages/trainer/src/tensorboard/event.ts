import { maskedCrc32c } from "./crc32c.js";

// Wire types of protocol buffers.
const varintType = 0;
const fixed64Type = 1;
const bytesType = 2;
const fixed32Type = 5;

/** An event of TensorBoard: the written fields of tensorflow/core/util/event.proto. */
export interface Event {
  /** Seconds since 1970. */
  readonly wallTime: number;
  readonly step?: number;
  /** "brain.Event:2", in the first event of a file. */
  readonly fileVersion?: string;
  readonly scalars?: readonly { readonly tag: string; readonly value: number }[];
  /** Whether entries of other files from this step on no longer count (SessionLog.START). */
  readonly isRestart?: boolean;
}

/** A record of a TFRecord file: length, its checksum, an event, its checksum; all little-endian. */
export function eventRecord(event: Event): Uint8Array {
  const data = Uint8Array.from(messageOf(event));
  const record = new Uint8Array(data.length + 16);
  const view = new DataView(record.buffer);
  view.setUint32(0, data.length, true);
  view.setUint32(8, maskedCrc32c(record.subarray(0, 8)), true);
  record.set(data, 12);
  view.setUint32(12 + data.length, maskedCrc32c(data), true);
  return record;
}

function messageOf({ wallTime, step = 0, fileVersion, scalars, isRestart }: Event): number[] {
  return [
    ...fieldOf(
      1,
      fixed64Type,
      numberBytes(8, (view) => view.setFloat64(0, wallTime, true)),
    ),
    ...(step === 0 ? [] : fieldOf(2, varintType, varint(step))),
    ...(fileVersion === undefined ? [] : textField(3, fileVersion)),
    ...(scalars ? lengthField(5, scalars.flatMap(summaryValue)) : []),
    // SessionLog.status = START
    ...(isRestart ? lengthField(7, fieldOf(1, varintType, [1])) : []),
  ];
}

/** Summary.value = { tag, simple_value } */
const summaryValue = ({ tag, value }: { readonly tag: string; readonly value: number }): number[] =>
  lengthField(1, [
    ...textField(1, tag),
    ...fieldOf(
      2,
      fixed32Type,
      numberBytes(4, (view) => view.setFloat32(0, value, true)),
    ),
  ]);

const fieldOf = (field: number, type: number, content: readonly number[]): number[] => [
  (field << 3) | type,
  ...content,
];

const lengthField = (field: number, content: readonly number[]): number[] =>
  fieldOf(field, bytesType, [...varint(content.length), ...content]);

const textField = (field: number, text: string): number[] =>
  lengthField(field, [...new TextEncoder().encode(text)]);

/** Seven bits a byte, the lowest first. Steps may have more bits than bitwise operators take. */
function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return [...bytes, rest];
}

function numberBytes(length: number, write: (view: DataView) => void): number[] {
  const bytes = new Uint8Array(length);
  write(new DataView(bytes.buffer));
  return [...bytes];
}
