import { create, toBinary } from "@bufbuild/protobuf";
import { encodeArray, float16 } from "@halfstep/formats";
import { type Attribute, attributeOf } from "../attributes.js";
import { type DataType, dataType } from "../data-type.js";
import { OnnxError } from "../errors.js";
import {
  GraphProtoSchema,
  ModelProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  TensorProtoSchema,
  type ValueInfoProto,
  ValueInfoProtoSchema,
} from "../schema/onnx_pb.js";
import { isConstant, type Size } from "./size.js";

/** A value of the graph, by its name. */
export interface Reference {
  name: string;
}

/** Attributes of a node, by name. */
export type Attributes = Readonly<Record<string, Attribute>>;

interface Node {
  readonly name: string;
  readonly operator: string;
  readonly inputs: readonly (Reference | undefined)[];
  readonly outputs: readonly Reference[];
  readonly attributes: Attributes;
}

/** An input or output of the graph. */
export interface Port {
  readonly reference: Reference;
  readonly type: DataType;
  readonly shape: readonly Size[];
}

/** A tensor of numbers that the file holds, or another file beside it. */
export interface StoredTensor {
  readonly type: DataType;
  readonly shape: readonly number[];
  readonly values: ArrayLike<number> | ExternalPlace;
}

/** A part of a file beside the model, in bytes. */
export interface ExternalPlace {
  readonly location: string;
  readonly offset: number;
  readonly length: number;
}

const isExternal = (values: StoredTensor["values"]): values is ExternalPlace =>
  "location" in values;

/** Files of protobuf are shorter than 2 GiB. */
const longestFile = 2 ** 31 - 1;

/** The version of the file format that came with each version of the operators. */
const irVersions: Readonly<Record<number, bigint>> = { 17: 8n, 18: 8n, 19: 9n, 20: 9n, 21: 10n };

/** The versions of the operators that are written. */
export const opsets: readonly number[] = Object.keys(irVersions).map(Number);

/** A graph of ONNX in the making. */
export class GraphBuilder {
  readonly opset: number;
  /** Names of nodes and values begin with it: the path of the module that applies the op. */
  scope = "";
  readonly #nodes: Node[] = [];
  readonly #computed = new Set<Reference>();
  readonly #stored = new Map<Reference, StoredTensor>();
  readonly #constants = new Map<string, Reference>();
  readonly #names = new Set<string>();

  constructor(opset: number) {
    this.opset = opset;
  }

  /** A new value; its name is the wanted one, with a number where that is taken. */
  reference(wanted: string): Reference {
    let name = wanted;
    for (let n = 2; this.#names.has(name); n++) name = `${wanted}_${n}`;
    this.#names.add(name);
    return { name };
  }

  /** Appends a node of one result. */
  node(
    operator: string,
    inputs: readonly (Reference | undefined)[],
    attributes: Attributes = {},
  ): Reference {
    return this.nodeOf(1, operator, inputs, attributes)[0] as Reference;
  }

  /** Appends a node of several results. */
  nodeOf(
    count: number,
    operator: string,
    inputs: readonly (Reference | undefined)[],
    attributes: Attributes = {},
  ): readonly Reference[] {
    const wanted = this.scope === "" ? operator : `${this.scope}/${operator}`;
    const outputs = Array.from({ length: count }, () => this.reference(wanted));
    const name = `/${outputs[0]?.name}`;
    this.#nodes.push({ name, operator, inputs, outputs, attributes });
    for (const output of outputs) this.#computed.add(output);
    return outputs;
  }

  /** Names a result of the graph. */
  output(name: string, value: Reference): Reference {
    const named = this.#computed.delete(value) ? value : this.node("Identity", [value]);
    named.name = this.reference(name).name;
    return named;
  }

  /** Runs `fn`, and puts the nodes that it appends before all others. */
  before<T>(fn: () => T): T {
    const count = this.#nodes.length;
    const result = fn();
    this.#nodes.unshift(...this.#nodes.splice(count));
    return result;
  }

  /** Numbers that the file holds under a name. */
  store(reference: Reference, tensor: StoredTensor): void {
    this.#stored.set(reference, tensor);
  }

  /** Constant numbers: a scalar, or a vector. Equal ones are stored once. */
  constant(type: DataType, values: number | readonly number[]): Reference {
    const list = typeof values === "number" ? [values] : values;
    const shape = typeof values === "number" ? [] : [values.length];
    const key = `${type} [${shape}] ${list.map((each) => (Object.is(each, -0) ? "-0" : each))}`;
    const known = this.#constants.get(key);
    if (known) return known;
    const made = this.reference("constant");
    this.#constants.set(key, made);
    this.store(made, { type, shape, values: list });
    return made;
  }

  /** The file. Nodes and numbers that no output needs are left out. */
  finish(inputs: readonly Port[], outputs: readonly Port[]): Uint8Array<ArrayBuffer> {
    const needed = new Set<string>(outputs.map(({ reference }) => reference.name));
    const nodes: NodeProto[] = [];
    for (const node of this.#nodes.toReversed()) {
      if (!node.outputs.some(({ name }) => needed.has(name))) continue;
      for (const input of node.inputs) if (input) needed.add(input.name);
      nodes.push(protoOf(node));
    }
    const stored = [...this.#stored].filter(([{ name }]) => needed.has(name));
    requireShort(stored);
    const graph = create(GraphProtoSchema, {
      name: "halfstep",
      node: nodes.reverse(),
      initializer: stored.map(([{ name }, tensor]) => tensorOf(name, tensor)),
      input: inputs.map(portOf),
      output: outputs.map(portOf),
    });
    const model = create(ModelProtoSchema, {
      irVersion: irVersions[this.opset] as bigint,
      producerName: "halfstep",
      opsetImport: [{ domain: "", version: BigInt(this.opset) }],
      graph,
    });
    return toBinary(ModelProtoSchema, model);
  }
}

function requireShort(stored: readonly (readonly [Reference, StoredTensor])[]): void {
  const bytes = stored.reduce(
    (sum, [, { type, values }]) =>
      isExternal(values) ? sum : sum + values.length * bytesOfElement(type),
    0,
  );
  if (bytes > longestFile)
    throw new OnnxError(
      "size",
      `the weights have ${bytes} bytes, and an ONNX file of protobuf at most ${longestFile}: write them beside it by the option external, or store the model in float16`,
    );
}

const protoOf = ({ name, operator, inputs, outputs, attributes }: Node): NodeProto =>
  create(NodeProtoSchema, {
    opType: operator,
    name,
    input: inputs.map((input) => input?.name ?? ""),
    output: outputs.map(({ name }) => name),
    attribute: Object.entries(attributes).map(([name, value]) => attributeOf(name, value)),
  });

const portOf = ({ reference: { name }, type, shape }: Port): ValueInfoProto =>
  create(ValueInfoProtoSchema, {
    name,
    type: {
      value: {
        case: "tensorType",
        value: {
          elemType: type,
          shape: { dim: shape.map((size) => ({ value: dimension(size) })) },
        },
      },
    },
  });

type Dimension =
  | { readonly case: "dimValue"; readonly value: bigint }
  | { readonly case: "dimParam"; readonly value: string };

/** A size that is no constant has a name: "batch", or "4*batch". */
function dimension(size: Size): Dimension {
  if (isConstant(size)) return { case: "dimValue", value: BigInt(size.factor) };
  const factors = size.factor === 1 ? size.axes : [size.factor, ...size.axes];
  return { case: "dimParam", value: size.isKnown ? factors.join("*") : "unknown" };
}

const bytesPerElement: Readonly<Partial<Record<DataType, number>>> = {
  [dataType.FLOAT]: 4,
  [dataType.FLOAT16]: 2,
  [dataType.INT64]: 8,
  [dataType.BOOL]: 1,
};

/** Bytes of an element. */
export const bytesOfElement = (type: DataType): number => bytesPerElement[type] ?? 8;

const tensorOf = (name: string, { type, shape, values }: StoredTensor): TensorProto =>
  create(TensorProtoSchema, {
    name,
    dataType: type,
    dims: shape.map((size) => BigInt(size)),
    ...(isExternal(values)
      ? {
          dataLocation: 1,
          externalData: Object.entries(values).map(([key, value]) => ({ key, value: `${value}` })),
        }
      : { rawData: bytesOf(type, values) }),
  });

/** Numbers as little-endian bytes. */
export function bytesOf(type: DataType, values: ArrayLike<number>): Uint8Array {
  switch (type) {
    case dataType.FLOAT16:
      return new Uint8Array(encodeArray(values, float16).buffer);
    case dataType.INT64:
      return new Uint8Array(BigInt64Array.from(Array.from(values, BigInt)).buffer);
    case dataType.BOOL:
      return Uint8Array.from(values);
    default:
      return new Uint8Array(Float32Array.from(values).buffer);
  }
}
