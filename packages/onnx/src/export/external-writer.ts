import type { DataType } from "../data-type.js";
import { OnnxError } from "../errors.js";
import { isInside } from "../import/external-data.js";
import { bytesOf, bytesOfElement, type ExternalPlace } from "./graph-builder.js";

/** A file beside the model that takes its weights. */
export interface ExternalSink {
  /** Its path from the model's folder: `model.onnx.data`. */
  readonly location: string;
  /** Appends bytes. */
  write(bytes: Uint8Array): void | Promise<void>;
  /** The bytes that the file has already. Default 0. */
  readonly offset?: number | undefined;
}

/** Tensors of fewer bytes stay in the model: runtimes want to know shapes before they open other files. */
const leastBytes = 1024;

/** Tensors begin at multiples of it, so that runtimes can map them into memory. */
const alignment = 4096;

/** Elements that are written at once: at most 16 MiB. */
const pieceElements = 2 ** 22;

/** Writes tensors one after the other into a file beside the model, piece by piece. */
export class ExternalWriter {
  readonly #sink: ExternalSink;
  #length: number;

  /** @throws OnnxError for a path out of the model's folder, and for a length that is none */
  constructor(sink: ExternalSink) {
    const { location, offset = 0 } = sink;
    if (!isInside(location))
      throw new OnnxError(
        "inputs",
        `external data in ${JSON.stringify(location)} would not lie in the model's folder: give the name of a file`,
      );
    if (!Number.isSafeInteger(offset) || offset < 0)
      throw new OnnxError("inputs", `external data at ${offset}: give a whole number of bytes`);
    this.#sink = sink;
    this.#length = offset;
  }

  /** Whether a tensor lies in the other file. */
  takes(type: DataType, count: number): boolean {
    return count * bytesOfElement(type) >= leastBytes;
  }

  /** Appends numbers, and returns where they lie. */
  async append(
    type: DataType,
    values: { readonly length: number; subarray(start: number, end: number): ArrayLike<number> },
  ): Promise<ExternalPlace> {
    const padding = (alignment - (this.#length % alignment)) % alignment;
    if (padding > 0) await this.#write(new Uint8Array(padding));
    const offset = this.#length;
    for (let at = 0; at < values.length; at += pieceElements)
      await this.#write(bytesOf(type, values.subarray(at, at + pieceElements)));
    return { location: this.#sink.location, offset, length: this.#length - offset };
  }

  async #write(bytes: Uint8Array): Promise<void> {
    await this.#sink.write(bytes);
    this.#length += bytes.length;
  }
}
