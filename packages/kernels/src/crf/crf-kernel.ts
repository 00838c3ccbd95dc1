import type { Kernel, KernelBinding, KernelScalar, KernelView } from "@halfstep/device";
import type { KernelDefinition } from "../definition.js";
import { defineKernel } from "../kernel.js";
import type { CrfScalars, CrfShape } from "./shape.js";

/** The optional operands, which are static choices of a program. */
export interface CrfParts {
  readonly hasTags: boolean;
  readonly hasMask: boolean;
  /** Whether there are more tags than lanes of a small workgroup. */
  readonly isWide: boolean;
}

/** Tags that a small workgroup processes at once. */
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

/** A binding of float32 that is stored element by element. */
export const single = <Name extends string>(name: Name, access: "read" | "write"): Named<Name> => ({
  ...{ name, access, unit: 1, dtypes: ["float32"] },
});

/** The definition of a CRF kernel, whose `reference` gets its views by the names of its bindings. */
export interface CrfKernelDefinition<Name extends string>
  extends Pick<KernelDefinition, "name" | "body" | "workgroups"> {
  readonly bindings: readonly Named<Name>[];
  /** Scalars besides {@link CrfScalars}. */
  readonly scalars?: readonly KernelScalar[];
  /** Views of absent operands must not be read. */
  reference(
    views: Readonly<Record<Name, KernelView>>,
    scalars: CrfScalars & Readonly<Record<string, number>>,
  ): void;
}

/** A kernel for each choice of parts, made on first use. */
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
