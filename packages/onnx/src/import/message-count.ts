import type { DescMessage } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { OnnxError } from "../errors.js";

/** Nodes, attributes, tensors and the like of one file. Graphs of 10,000 operators have fewer than 100,000. */
const mostMessages = 2 ** 18;

/** Messages within messages: branches within branches. */
const deepest = 90;

/**
 * Throws where a file has so many or so deep messages that their objects would need far more memory than the file. Two bytes make an object
 * of hundreds. Nothing is allocated.
 *
 * @throws Error of the reader where lengths are beyond the file
 */
export function requireFewMessages(schema: DescMessage, bytes: Uint8Array): void {
  const reader = new BinaryReader(bytes);
  let left = mostMessages;
  const count = (message: DescMessage, end: number, depth: number): void => {
    if (depth > deepest)
      throw new OnnxError(
        "size",
        `graphs lie more than ${deepest} deep in each other: export the model without them`,
      );
    while (reader.pos < end) {
      const [number, type] = reader.tag();
      const inner = type === WireType.LengthDelimited ? messageOf(message, number) : undefined;
      if (!inner) {
        reader.skip(type, number);
        continue;
      }
      if (left-- === 0)
        throw new OnnxError(
          "size",
          `the graph has more than ${mostMessages} nodes, attributes and tensors: split the model`,
        );
      const length = reader.uint32();
      if (length > end - reader.pos) throw new RangeError("a length is beyond the file");
      count(inner, reader.pos + length, depth + 1);
    }
  };
  count(schema, bytes.length, 0);
}

/** The message that a field holds; undefined for other fields. */
const messageOf = (message: DescMessage, number: number): DescMessage | undefined =>
  message.fields.find((field) => field.number === number)?.message;
