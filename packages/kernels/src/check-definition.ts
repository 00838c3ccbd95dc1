import type { KernelBinding, KernelScalar } from "@halfstep/device";
import { allDTypes } from "@halfstep/formats/dtypes";
import { shown } from "./attributes.js";
import type { KernelDefinition } from "./definition.js";

/** The members of a definition: of each the type of its value, where there is one besides undefined. */
const members: Readonly<Record<keyof KernelDefinition, "string" | "function" | "list" | "other">> =
  {
    name: "string",
    variant: "string",
    bindings: "list",
    scalars: "list",
    conversions: "list",
    body: "function",
    movesQuads: "function",
    directives: "function",
    subgroups: "function",
    workgroups: "function",
    reference: "function",
    operations: "function",
    factors: "other",
    one: "string",
    epilogue: "string",
    storedOnce: "list",
    storesItself: "other",
  };

const required: readonly (keyof KernelDefinition)[] = [
  "name",
  "bindings",
  "body",
  "workgroups",
  "reference",
];

const bindingMembers = ["name", "access", "unit", "atomic", "dtypes"];
const scalarMembers = ["name", "type", "runtime"];

/**
 * Throws a TypeError for a definition that gives no valid program, or another one on the CPU than on a GPU: unknown or missing members,
 * and bindings and scalars of unknown kinds or with one name.
 */
export function checkDefinition(definition: KernelDefinition): void {
  const what = `kernel ${shown(definition?.name)}`;
  const refuse = (problem: string): never => {
    throw new TypeError(`${what}: ${problem}`);
  };
  if (typeof definition !== "object" || definition === null)
    throw new TypeError(`defineKernel takes a definition, not ${shown(definition)}`);
  for (const name of required)
    if (definition[name] === undefined) refuse(`it has no ${name}, which every kernel needs`);
  refuseUnknown("it", definition, Object.keys(members), refuse);
  for (const [name, kind] of Object.entries(members)) {
    const value: unknown = definition[name as keyof KernelDefinition];
    if (value === undefined || kind === "other") continue;
    if (kind === "list" ? !Array.isArray(value) : typeof value !== kind)
      refuse(`${name} is ${shown(value)}: it must be a ${kind}`);
  }
  const { bindings, scalars = [], conversions = [], epilogue, storedOnce = [] } = definition;
  for (const binding of bindings) checkBinding(binding, refuse);
  for (const scalar of scalars) checkScalar(scalar, refuse);
  for (const [kind, named] of Object.entries({ bindings, scalars }))
    checkNames(
      kind,
      named.map(({ name }) => name),
      refuse,
    );
  for (const format of conversions)
    if (format !== "float16" && format !== "bfloat16")
      refuse(`there is no conversion to ${shown(format)}: choose float16 or bfloat16`);
  if (epilogue !== undefined && epilogue !== "store")
    refuse(`epilogue is ${shown(epilogue)}: it can be "store"`);
  for (const name of storedOnce)
    if (!bindings.some((binding) => binding.name === name))
      refuse(`storedOnce names ${shown(name)}, which is no binding`);
}

type Refuse = (problem: string) => never;

function checkBinding(binding: KernelBinding, refuse: Refuse): void {
  const { name, access, unit, dtypes } = binding;
  const what = `binding ${shown(name)}`;
  refuseUnknown(what, binding, bindingMembers, refuse);
  if (access !== "read" && access !== "write" && access !== "readwrite")
    refuse(`${what} has the access ${shown(access)}: choose read, write or readwrite`);
  if (unit !== undefined && unit !== 1 && unit !== 2 && unit !== 4)
    refuse(`${what} has the unit ${shown(unit)}: choose 1, 2 or 4`);
  if (dtypes !== undefined && (!Array.isArray(dtypes) || dtypes.length === 0))
    refuse(`${what} has the dtypes ${shown(dtypes)}: give a list of at least one`);
  for (const dtype of dtypes ?? [])
    if (!allDTypes.includes(dtype))
      refuse(`${what} takes the dtype ${shown(dtype)}: there are ${allDTypes.join(", ")}`);
}

function checkScalar(scalar: KernelScalar, refuse: Refuse): void {
  const what = `scalar ${shown(scalar.name)}`;
  refuseUnknown(what, scalar, scalarMembers, refuse);
  if (scalar.type !== "f32" && scalar.type !== "i32" && scalar.type !== "u32")
    refuse(`${what} has the type ${shown(scalar.type)}: choose f32, i32 or u32`);
}

function checkNames(kind: string, names: readonly string[], refuse: Refuse): void {
  for (const [i, name] of names.entries()) {
    if (typeof name !== "string" || !/^[A-Za-z]\w*$/.test(name))
      refuse(`${shown(name)} among its ${kind} is no name that WGSL can have`);
    if (names.indexOf(name) < i) refuse(`two of its ${kind} are named ${shown(name)}`);
  }
}

function refuseUnknown(
  what: string,
  given: object,
  known: readonly string[],
  refuse: Refuse,
): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined)
    refuse(`${what} has no option ${shown(unknown)}: there are ${known.join(", ")}`);
}
