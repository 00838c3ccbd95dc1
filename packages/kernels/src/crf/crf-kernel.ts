import type { Kernel, KernelBinding, KernelScalar, KernelView } from "@halfstep/device";
import type { KernelDefinition } from "../definition.js";
import { defineKernel } from "../kernel.js";
import type { CrfScalars, CrfShape } from "./shape.js";

/** The operands that there may be, which are static choices of a program. */
export interface CrfParts {
  readonly hasTags: boolean;
  readonly hasMask: boolean;
  /** Whether the tags are more than the lanes of a small workgroup. */
  readonly isWide: boolean;
}

/** Tags that the lanes of a small workgroup take at once. */
export const smallLanes = 32;

export const partsOf = (
  { tags, mask }: { readonly tags?: unknown; readonly mask?: unknown },
  { numTags }: CrfShape,
): CrfParts => ({ hasTags: !!tags, hasMask: !!mask, isWide: numTags > smallLanes });

const variantOf = ({ hasTags, hasMask, isWide }: CrfParts): string =>
  [hasTags && "tags", hasMask && "mask", isWide && "wide"].filter(Boolean).join(", ");

interface Named<Name extends string> extends KernelBinding {
  readonly name: Name;
}

const integers = <Name extends string>(name: Name): Named<Name> => ({
  ...{ name, access: "read", unit: 1, dtypes: ["uint32"] },
});

export const tagsBinding = ({ hasTags }: CrfParts): readonly Named<"tags">[] =>
  hasTags ? [integers("tags")] : [];

export const maskBinding = ({ hasMask }: CrfParts): readonly Named<"mask">[] =>
  hasMask ? [integers("mask")] : [];

/** A binding of float32, of which invocations store one element at a time. */
export const single = <Name extends string>(name: Name, access: "read" | "write"): Named<Name> => ({
  ...{ name, access, unit: 1, dtypes: ["float32"] },
});

/** What a CRF kernel's author writes: a kernel whose `reference` finds its views by the names of its bindings. */
export interface CrfKernelDefinition<Name extends string>
  extends Pick<KernelDefinition, "name" | "body" | "workgroups"> {
  readonly bindings: readonly Named<Name>[];
  /** Scalars besides {@link CrfScalars}. */
  readonly scalars?: readonly KernelScalar[];
  /** What is no binding, because there is no such operand, is not to be read. */
  reference(
    views: Readonly<Record<Name, KernelView>>,
    scalars: CrfScalars & Readonly<Record<string, number>>,
  ): void;
}

/** A kernel for each choice of parts, made when it is first asked for. */
export function crfKernel<Name extends string>(
  define: (parts: CrfParts) => CrfKernelDefinition<Name>,
): (parts: CrfParts) => Kernel {
  const made = new Map<string, Kernel>();
  return (parts) => {
    const variant = variantOf(parts);
    const kernel = made.get(variant) ?? kernelFrom(define(parts), variant);
    made.set(variant, kernel);
    return kernel;
  };
}

function kernelFrom<Name extends string>(
  { bindings, scalars = [], reference, ...definition }: CrfKernelDefinition<Name>,
  variant: string,
): Kernel {
  return defineKernel({
    ...{ ...definition, variant, bindings, scalars: [...sizes, ...scalars] },
    reference: (views, values) =>
      reference(
        Object.fromEntries(bindings.map(({ name }, i) => [name, views[i]])) as Record<
          Name,
          KernelView
        >,
        values as CrfScalars & Readonly<Record<string, number>>,
      ),
  });
}

const sizes: readonly KernelScalar[] = ["batch", "length", "tags"].map((name) => ({
  name,
  type: "u32",
}));
