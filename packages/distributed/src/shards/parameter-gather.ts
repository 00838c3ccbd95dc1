import type { Binding, HalfDType } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { elementwise, identity } from "@halfstep/kernels";
import {
  defineHostOp,
  type HostFunction,
  type HostOp,
  hostLaunch,
  type RecorderTarget,
  type Storage,
} from "@halfstep/tensor/functional";
import { Breath } from "../wire/breath.js";
import { common, type Range } from "../wire/chunk.js";
import { copyTo } from "../wire/copy.js";
import type { Exchange } from "../wire/exchange.js";
import type { OwnPart } from "./stripes.js";

/** A range of flat parameters that travels in one format. */
export interface Run extends Range {
  /** The format to which float32 values are rounded on their way; undefined where they travel as they are. */
  readonly rounding: HalfDType | undefined;
}

/** A part of a run that one rank owns. */
interface Piece extends Range {
  /** The index of the run. */
  readonly run: number;
}

/** The flat parameters of which each rank has a shard. */
export interface GatheredParameters {
  readonly target: RecorderTarget;
  readonly exchange: Exchange;
  readonly values: Binding<Storage>;
  /** What each rank owns. */
  readonly owned: readonly (readonly OwnPart[])[];
  /** For errors. */
  readonly label: string;
}

/** Gives all ranks the parameters that each of them owns, within a step. */
export class ParameterGather {
  readonly #parameters: GatheredParameters;
  /** By the bindings that they have: a plan is cached by its host ops. */
  readonly #ops = new Map<string, HostOp>();

  constructor(parameters: GatheredParameters) {
    this.#parameters = parameters;
  }

  /** Records that the values in `runs` become those of their owners. Runs begin at multiples of 128 elements. */
  record(runs: readonly Run[]): void {
    const { target, exchange, values, owned } = this.#parameters;
    const own = this.#piecesOf(exchange.carrier.rank, runs);
    const received = runs.map((run) => this.#received(run));
    const sent = own.map((piece) => this.#sent(piece, runs));
    target.launch(
      hostLaunch(
        this.#opOf([...sent, ...received], sent.length),
        [...sent, ...received],
        this.#functionOf(runs, own),
      ),
    );
    for (const [i, run] of runs.entries())
      if (run.rounding)
        for (const rest of without(run, owned[exchange.carrier.rank] ?? []))
          copy(target, part(received[i] as Binding<Storage>, rest, run.offset), part(values, rest));
  }

  /** Memory for a run of all ranks: the values themselves, or their codes. */
  #received({ offset, length, rounding }: Run): Binding<Storage> {
    const { target, values } = this.#parameters;
    if (!rounding) return part(values, { offset, length });
    const buffer = target.allocate(bytesFor(rounding, length));
    return { buffer, offset: 0, length, dtype: rounding };
  }

  /** Memory with a piece of this rank: the values themselves, or their codes. */
  #sent(piece: Piece, runs: readonly Run[]): Binding<Storage> {
    const { target, values } = this.#parameters;
    const { rounding } = runs[piece.run] as Run;
    const own = part(values, piece);
    if (!rounding) return own;
    const { length } = piece;
    const codes = {
      buffer: target.allocate(bytesFor(rounding, length)),
      ...{ offset: 0, length, dtype: rounding },
    };
    copy(target, own, codes);
    return codes;
  }

  #opOf(bindings: readonly Binding<Storage>[], sent: number): HostOp {
    const key = [sent, ...bindings.map(({ dtype }) => dtype)].join();
    const known = this.#ops.get(key);
    if (known) return known;
    const op = defineHostOp({
      name: "gather parameters",
      bindings: bindings.map(({ dtype }, i) => ({
        name: i < sent ? `own ${i}` : `all ${i - sent}`,
        access: i < sent ? "read" : "write",
        dtypes: [dtype],
      })),
      isFinal: true,
    });
    this.#ops.set(key, op);
    return op;
  }

  #functionOf(runs: readonly Run[], own: readonly Piece[]): HostFunction {
    const { exchange, values, owned, label } = this.#parameters;
    const sizes = runs.map(({ rounding }) => bytesFor(rounding ?? values.dtype, 1));
    const sizeOf = ({ run, length }: Piece): number => length * (sizes[run] as number);
    return async (operands) => {
      const all = owned.map((_, rank) => this.#piecesOf(rank, runs));
      const lengths = all.map((pieces) => pieces.reduce((sum, piece) => sum + sizeOf(piece), 0));
      const send = exchange.carrier.allocate(Math.max(...lengths));
      const breath = new Breath();
      let end = 0;
      for (const [i, piece] of own.entries()) {
        const bytes = (operands[i] as Uint8Array).subarray(0, sizeOf(piece));
        await copyTo(send.subarray(end), bytes, breath);
        end += sizeOf(piece);
      }
      const received = await exchange.collect(send, label);
      for (const [rank, pieces] of all.entries()) {
        let start = 0;
        for (const piece of pieces) {
          const { offset } = runs[piece.run] as Run;
          const bytes = received(rank).subarray(start, start + sizeOf(piece));
          const into = operands[own.length + piece.run] as Uint8Array;
          const place = (piece.offset - offset) * (sizes[piece.run] as number);
          await copyTo(into.subarray(place), bytes, breath);
          start += sizeOf(piece);
        }
      }
    };
  }

  /** What a rank owns of the runs. */
  #piecesOf(rank: number, runs: readonly Run[]): readonly Piece[] {
    const parts = this.#parameters.owned[rank] ?? [];
    return runs.flatMap((run, index) =>
      parts.flatMap((part) => {
        const range = common(run, part);
        return range ? [{ ...range, run: index }] : [];
      }),
    );
  }
}

/** What is left of a range without its parts, which are in the order of their offsets. */
function without(range: Range, parts: readonly Range[]): readonly Range[] {
  const rest: Range[] = [];
  let start = range.offset;
  const end = range.offset + range.length;
  for (const owned of parts) {
    const found = common(range, owned);
    if (!found) continue;
    if (found.offset > start) rest.push({ offset: start, length: found.offset - start });
    start = found.offset + found.length;
  }
  if (end > start) rest.push({ offset: start, length: end - start });
  return rest;
}

/** A range of a binding whose first element has the number `first`. */
const part = (
  binding: Binding<Storage>,
  { offset, length }: Range,
  first = 0,
): Binding<Storage> => ({
  ...binding,
  offset: binding.offset + bytesFor(binding.dtype, offset - first),
  length,
});

/** Copies elements, rounded to the dtype of `to`. */
function copy(target: RecorderTarget, from: Binding<Storage>, to: Binding<Storage>): void {
  const shape = [from.length];
  target.launch(elementwise(identity, [{ ...from, shape }], { ...to, shape }));
}
