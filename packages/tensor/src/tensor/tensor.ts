import { DTypeError } from "@halfstep/autocast";
import type { DType, KernelView } from "@halfstep/device";
import { bytesFor, type IntegerDType } from "@halfstep/formats/dtypes";
import type { GradientMark } from "@halfstep/grad-scaler";
import { argumentCheck } from "../arguments/arguments.js";
import { isTensor } from "../arguments/is-tensor.js";
import * as kinds from "../arguments/kinds.js";
import * as ownKinds from "../arguments/own-kinds.js";
import type { GradNode } from "../autograd/grad-node.js";
import { type GradientMarks, notedMarks, unknownMarks } from "../autograd/scale-marks.js";
import { castTo } from "../dispatch/cast.js";
import type { Operand } from "../dispatch/op.js";
import { traceInside } from "../dispatch/trace.js";
import { ClosedTensorError, RecordingError, ShapeError } from "../errors.js";
import { assign } from "../ops/assign.js";
import { ne } from "../ops/comparison.js";
import { reshapeNode } from "../ops/shape.js";
import { halfCopiesOf } from "../record/half-copies.js";
import type { Placement, Storage } from "../record/storage.js";
import { isSameShape, sizeOf } from "../shapes.js";
import { BasicMethods } from "./basic-methods.js";
import type { FurtherMethods } from "./further-methods.js";
import { asArrayOf, mostPrinted, textOf } from "./print.js";
import type { Runtime } from "./runtime.js";

const checkTo = argumentCheck("to", { dtype: ownKinds.dtypeOrBool });
const checkSetGrad = argumentCheck("setGrad", { gradient: kinds.optional(kinds.tensor) });
const checkAssign = argumentCheck("assign", {
  value: kinds.tensor,
  options: kinds.optionals({ unless: ownKinds.flagInMemory }),
});

/** The array of the elements of a dtype on the host. */
export type ElementsOf<D extends DType> = D extends IntegerDType
  ? { int32: Int32Array; uint32: Uint32Array }[D]
  : Float32Array;

/**
 * A contiguous array of numbers in the memory of its runtime. Calling an op appends to the runtime's open recording; nothing is
 * computed, and nothing waits, until the recording closes.
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: with-methods.ts adds what the interface below declares.
export class Tensor extends BasicMethods {
  readonly runtime: Runtime;
  readonly shape: readonly number[];
  readonly dtype: DType;
  /** Number of elements. */
  readonly size: number;
  /** @internal Distinguishes tensors from other values. */
  readonly isTensor: true = true;
  /** Whether `backward()` computes a gradient for this tensor, or through it. */
  requiresGrad = false;
  /** @internal The op that made the tensor, if autograd needs it. */
  gradNode: GradNode | undefined;
  protected place: Placement;
  #operand: Operand | undefined;
  #gradient: Variable | undefined;
  #hasGradient = false;
  #gradientMarks: GradientMarks = unknownMarks;
  #isDisposed = false;
  /** The elements that were read last, of a small tensor. */
  #known: { readonly version: number; readonly values: KernelView } | undefined;

  static {
    // What `console.log` prints in Node. A member of this name would have no type in declarations.
    Object.defineProperty(Tensor.prototype, Symbol.for("nodejs.util.inspect.custom"), {
      value(this: Tensor) {
        return this.toString();
      },
    });
  }

  /** @internal Tensors are made by a runtime or by ops. */
  constructor(runtime: Runtime, place: Placement, shape: readonly number[], dtype: DType) {
    super();
    this.runtime = runtime;
    this.place = place;
    this.shape = shape;
    this.dtype = dtype;
    this.size = sizeOf(shape);
  }

  /** Number of dimensions. */
  get rank(): number {
    return this.shape.length;
  }

  /** The gradient that `backward()` left here: float32, or undefined where there is none. */
  get grad(): Variable | undefined {
    return this.#hasGradient ? this.#gradient : undefined;
  }

  /**
   * The marks of the loss scales that the gradient carries, from all backward passes since the last `zeroGrad()`. Scalers read them.
   * Empty where nothing is known, or there is no gradient.
   */
  get gradientMarks(): ReadonlySet<GradientMark> {
    return this.#gradientMarks;
  }

  /** @internal */
  get storage(): Storage {
    return this.place.storage;
  }

  /** @internal Bytes from the start of the storage. */
  get offset(): number {
    return this.place.offset;
  }

  /** @internal The clock of the last write to the elements; 0 where there was none. */
  get version(): number {
    const { storage, offset } = this.place;
    return storage.versionOf(offset, offset + bytesFor(this.dtype, this.size));
  }

  /** @internal The elements as a launch binds them. */
  operand(): Operand {
    const { storage } = this.place;
    if (!storage.endsInsideQuad) return this.elements();
    return { ...this.elements(), buffer: this.runtime.recorder.wholeQuads(storage) };
  }

  /** @internal The elements where they are. */
  elements(): Operand {
    this.assertUsable();
    const { shape, dtype, size: length } = this;
    const { storage: buffer, offset } = this.place;
    this.#operand ??= { buffer, offset, length, dtype, shape };
    return this.#operand;
  }

  protected putAt(place: Placement): void {
    this.place = place;
    this.#operand = undefined;
  }

  /** @internal */
  assertUsable(): void {
    if (this.#isDisposed)
      throw new ClosedTensorError(`a tensor of shape [${this.shape}] was used after dispose()`);
    const { storage } = this.place;
    if (this.runtime.isDisposed)
      throw new ClosedTensorError(
        `a tensor of shape [${this.shape}] was used after its runtime was disposed`,
      );
    if (storage.isResident || storage.recording === this.runtime.recording) return;
    throw new ClosedTensorError(
      `a tensor of shape [${this.shape}] was used after the step that made it. ` +
        "Return it from the step, or mark it keep() there, to use it later.",
    );
  }

  /** @internal */
  get isDisposed(): boolean {
    return this.#isDisposed;
  }

  /** @internal */
  attachNode(node: GradNode): void {
    this.gradNode = node;
    this.requiresGrad = true;
  }

  /**
   * The same values without history: no gradient flows through the result. It is the same memory: of a variable it shows later assignments,
   * until `flatten()` moves the variable.
   */
  detach(): Tensor {
    const view = this.runtime.recorder.viewOf(this, this.shape);
    traceInside(reshapeNode, this.shape, this, view);
    return view;
  }

  /** The values in another dtype: {@link castTo}. "bool" gives a mask: a uint32 of 1 where an element is not 0, else 0. */
  to(dtype: DType | "bool"): Tensor {
    checkTo([dtype]);
    return dtype === "bool" ? ne(this, 0) : castTo(this, dtype);
  }

  /** Keeps the tensor alive after the step that makes it. The caller has to `dispose()` it. */
  keep(): this {
    this.assertUsable();
    if (!this.place.storage.isResident) this.runtime.recording.kept.add(this.place.storage);
    this.runtime.recorder.handles.track(this);
    return this;
  }

  /** Releases the memory. A disposed tensor cannot be used again. */
  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.runtime.recorder.handles.untrack(this, this.place.storage);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** The one element of a tensor. Waits only for the recording that made it; inside a step it throws. */
  async item(): Promise<number> {
    if (this.size !== 1)
      throw new ShapeError(
        `item() reads a tensor of one element, not of shape [${this.shape}]; use toArray()`,
      );
    const values = await this.toArray();
    return values[0] as number;
  }

  /**
   * The elements in row-major order, decoded. Waits only for the recording that made them; inside a step it throws. With the tensor's
   * dtype the result has that dtype's type: `await mask.toArray("uint32")` is a `Uint32Array`.
   */
  toArray<D extends DType>(dtype: D): Promise<ElementsOf<D>>;
  toArray(): Promise<KernelView>;
  async toArray(dtype?: DType): Promise<KernelView> {
    if (dtype !== undefined && dtype !== this.dtype)
      throw new DTypeError(`toArray("${dtype}"): the tensor is ${this.dtype}; cast it with to()`);
    const { version } = this;
    const values = await this.runtime.read(this);
    if (this.size <= mostPrinted) this.#known = { version, values: values.slice() };
    return dtype === undefined ? values : asArrayOf(dtype, values);
  }

  /** The tensor for people: its shape, dtype and place, and its elements once they were read. Never waits. */
  override toString(): string {
    const isCurrent = this.#known?.version === this.version && !this.#isDisposed;
    return textOf(this, isCurrent ? this.#known?.values : undefined);
  }

  /** What `JSON.stringify()` writes: the text of {@link toString}. For the numbers, give it what `item()` or `toArray()` reads. */
  toJSON(): string {
    return this.toString();
  }

  /** Reads the elements and prints them on the console: of more than 1,000 the ends of each axis. Inside a step it throws. */
  async print(): Promise<void> {
    console.log(textOf(this, await this.toArray()));
  }

  /** The GPU buffer that holds the elements from byte `offset` on, without a copy. Only for resident tensors of a GPU runtime. */
  get buffer(): GPUBuffer {
    this.assertUsable();
    const { memory } = this.place.storage;
    if (!memory || !this.runtime.usesGpuBuffers)
      throw new RecordingError(
        "buffer is there for tensors in GPU memory: flush() the runtime first, and use gpuRuntime()",
      );
    halfCopiesOf(this.place.storage)?.valuesLent();
    return memory as GPUBuffer;
  }

  /**
   * Replaces the gradient by a copy of `gradient`, cast to float32, as an assignment to `.grad` in torch. `undefined` removes it, as
   * `zeroGrad()` does.
   *
   * @param marks the loss scales that it carries. Default: the marks of a tensor that `grad()` returned, and none for others.
   * @throws ShapeError where the shapes differ
   * @example
   * weight.setGrad(weight.grad?.mul(0.5)); // halves the gradient
   */
  setGrad(
    gradient: Tensor | undefined,
    marks: ReadonlySet<GradientMark> = gradient ? notedMarks(gradient) : unknownMarks,
  ): void {
    checkSetGrad([gradient]);
    if (gradient && !isSameShape(gradient.shape, this.shape))
      throw new ShapeError(
        `setGrad: the tensor has shape [${this.shape}], the gradient has [${gradient.shape}]`,
      );
    if (gradient) assign(this.gradientVariable(), gradient, undefined);
    this.setGradientState(gradient !== undefined, marks);
  }

  /** @internal Where `backward()` writes; made on first use. */
  gradientVariable(): Variable {
    this.#gradient ??= this.runtime.variable(new Float32Array(this.size), this.shape, {
      name: "grad",
    });
    return this.#gradient;
  }

  /**
   * @internal Moves the gradient to another place, where later ones are written too. One that is present stays, with its marks; so does a
   * variable that `grad` has returned.
   */
  placeGradient(place: Placement, name: string): void {
    const placed = this.runtime.variableAt(place, this.shape, "float32", name);
    const gradient = this.#gradient;
    if (!gradient || gradient.isDisposed) {
      this.#gradient = placed;
      this.setGradientState(false, unknownMarks);
      return;
    }
    assign(placed, gradient, undefined);
    gradient.moveTo(place);
    gradient.name = name;
    placed.dispose();
  }

  /** Sets the marks of a gradient that was not written by `backward()`; scalers call it. */
  markGradient(marks: ReadonlySet<GradientMark>): void {
    if (this.#hasGradient) this.setGradientState(true, marks);
  }

  /** @internal Sets whether there is a gradient, and its marks. */
  setGradientState(present: boolean, marks: GradientMarks): void {
    const before = this.#hasGradient;
    const marksBefore = this.#gradientMarks;
    if (before === present && marksBefore === marks) return;
    this.#hasGradient = present;
    this.#gradientMarks = marks;
    this.runtime.recorder.onDrop(() => {
      this.#hasGradient = before;
      this.#gradientMarks = marksBefore;
    });
  }

  /** Makes the gradient absent, so that the next `backward()` assigns it anew. */
  zeroGrad(): void {
    this.setGradientState(false, unknownMarks);
  }
}

/** Methods that the entry `@halfstep/tensor` adds to tensors. */
export interface Tensor extends FurtherMethods {}

/** Options of {@link Variable.assign}. */
export interface AssignOptions {
  /** One float32, a tensor's or a loss scaler's flag. Where it is not 0, the assignment changes nothing. */
  readonly unless?: Tensor | Storage | undefined;
}

/** The name of a variable that was given none. */
export const unnamed: string = "variable";

/**
 * A tensor whose elements change: a parameter, a buffer, a gradient, optimizer or scaler state. It changes only by `assign()`, in
 * program order, and a read gets the version at its position in program order.
 */
export class Variable extends Tensor {
  /** The name in errors and state dicts. */
  name: string;

  /** @internal Variables are made by a runtime. */
  constructor(
    runtime: Runtime,
    place: Placement,
    shape: readonly number[],
    dtype: DType,
    name: string,
  ) {
    super(runtime, place, shape, dtype);
    this.name = name;
  }

  /**
   * Replaces the elements by those of `value`. Floats are cast if the dtypes differ.
   *
   * @throws ShapeError unless `value` has the same shape
   * @throws DTypeError for integers of another dtype, and for integers in place of floats or floats in place of integers
   */
  assign(value: Tensor, options: AssignOptions = {}): void {
    checkAssign([value, options]);
    const { unless } = options;
    if (isTensor(unless) && unless.dtype !== "float32")
      throw new DTypeError(`assign: unless must be one float32, not ${unless.dtype}`);
    assign(this, value, isTensor(unless) ? unless.operand() : unless && flagIn(unless));
  }

  /** @internal Moves the variable to another place, whose contents are already right. */
  moveTo(place: Placement): void {
    this.assertUsable();
    this.runtime.recorder.handles.untrack(this, this.place.storage);
    this.putAt(place);
    this.runtime.recorder.handles.track(this);
  }
}

/** The binding of a flag, one float32, that primitives of loss scaling allocate. */
const flagIn = (buffer: Storage): Operand => ({
  ...{ buffer, offset: 0, length: 1, dtype: "float32", shape: [] },
});
