import type { Binding } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { allocateResident, type ResidentTarget } from "@halfstep/kernels";
import {
  blockWords,
  type SegmentBuffers,
  type SegmentTable,
  type StateKind,
  segmentTable,
  type UpdateRange,
  type UpdateRule,
} from "@halfstep/kernels/optimizers";
import { type FlatTensors, orderedSegments, presentRanges } from "./flat-tensors.js";
import { ownLength } from "./own-parts.js";
import { blocksAt, elementsAt, placesAt, type SavedBuffer } from "./saved-buffer.js";

/**
 * The storage of moments: float32, bfloat16, or 8 bits in blocks of 256 elements with a float32 peak each. The last two use
 * stochastic rounding by the optimizer's seed: rounded to nearest, averages that move by a thousandth a step would not change.
 * State that only grows (Adagrad's sum) and numbers of whole parameters are always float32.
 */
export type MomentFormat = "float32" | "bfloat16" | "int8";

/** The state of one group: buffers by the names of its rule, and tables for some kernels. */
export class GroupState<B> {
  readonly buffers: Readonly<Record<string, Binding<B>>>;
  readonly saved: readonly SavedBuffer<B>[];
  readonly #target: ResidentTarget<B>;
  readonly #params: FlatTensors<B>;
  readonly #table: SegmentTable;
  #tableBuffers: SegmentBuffers<B> | undefined;

  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B>,
    rule: UpdateRule,
    moments: MomentFormat,
    initial: Readonly<Record<string, number>>,
  ) {
    this.#target = target;
    this.#params = params;
    const ordered = orderedSegments(params.segments);
    this.#table = segmentTable(ordered.map(({ segment }) => segment));
    const places = new Map(ordered.map(({ index }, place) => [index, place]));
    const { segments } = params;
    const buffers: Record<string, Binding<B>> = {};
    const saved: SavedBuffer<B>[] = [];
    for (const [name, kind] of Object.entries(rule.state) as [string, StateKind][]) {
      const binding = this.#elements(kind, moments);
      buffers[name] = binding;
      if (kind === "transient") continue;
      const firstBlocks = segments.map((_, index) => this.#firstBlock(places.get(index) as number));
      saved.push(
        binding.dtype === "uint32"
          ? blocksAt(name, binding, segments, firstBlocks)
          : elementsAt(name, binding, segments),
      );
      const value = initial[name];
      if (value) target.write(binding, new Float32Array(binding.length).fill(value));
    }
    for (const { totals } of rule.passes)
      if (totals?.state) {
        const binding = this.#allocate("float32", segments.length);
        buffers[totals.state] = binding;
        const own = segments.map((_, index) => ({
          offset: places.get(index) as number,
          length: 1,
        }));
        saved.push(placesAt(totals.state, binding, segments, own));
      }
    this.buffers = buffers;
    this.saved = saved;
  }

  /** Tables of segments, made when they are first needed. */
  get table(): SegmentBuffers<B> {
    if (this.#tableBuffers) return this.#tableBuffers;
    const { chunks, segments } = this.#table;
    const words = (values: Uint32Array): Binding<B> => {
      const binding = this.#allocate("uint32", values.length);
      this.#target.write(binding, values);
      return binding;
    };
    this.#tableBuffers = {
      chunks: words(chunks),
      segments: words(segments),
      partials: this.#allocate("float32", chunks.length),
      factors: this.#allocate("float32", segments.length),
    };
    return this.#tableBuffers;
  }

  /** The parts that have gradients. */
  ranges(): readonly UpdateRange[] {
    const { segments } = this.#table;
    return presentRanges(this.#params).map(({ offset, length, firstSegment, endSegment }) => ({
      offset,
      length,
      firstSegment,
      endSegment,
      firstChunk: segments[firstSegment * 4] as number,
      endChunk: segments[(endSegment - 1) * 4 + 1] as number,
    }));
  }

  #elements(kind: StateKind, moments: MomentFormat): Binding<B> {
    const isMoment = kind === "signed" || kind === "unsigned";
    if (isMoment && moments === "int8")
      return this.#allocate("uint32", this.#table.blocks * blockWords);
    const length = ownLength(this.#params);
    return this.#allocate(isMoment && moments === "bfloat16" ? "bfloat16" : "float32", length);
  }

  #firstBlock(place: number): number {
    const { chunks, segments, blocks } = this.#table;
    const first = segments[place * 4] as number;
    return chunks[first * 4 + 3] ?? blocks;
  }

  #allocate(dtype: Binding<B>["dtype"], length: number): Binding<B> {
    const buffer = allocateResident(this.#target, bytesFor(dtype, Math.max(length, 1)));
    return { buffer, offset: 0, length, dtype };
  }
}
