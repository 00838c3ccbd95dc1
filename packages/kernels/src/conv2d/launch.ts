import type { Binding, Kernel, Launch, LaunchTarget } from "@halfstep/device";
import type { Conv2dAttributes } from "../conv2d.js";
import type { ProductPlan } from "../matmul/shape.js";
import { launchProduct } from "../matmul/split-k.js";
import { launchSlices } from "./assemble.js";

/** Size of an image, and factors of its height and width. */
export type ImageSize = readonly [height: number, width: number];

/** One of the three products of a convolution; each group and each phase is a slice [m, n]. */
interface Product<B> {
  readonly kernel: Kernel;
  readonly operands: readonly [source: Binding<B>, right: Binding<B>];
  readonly m: number;
  readonly n: number;
  readonly groups: number;
  /** Channels of the source in one group. */
  readonly channels: number;
  /** The image whose pixels are the rows, and the one that it gathers from. */
  readonly target: ImageSize;
  readonly source: ImageSize;
  /** The numbers of phases of lines and columns of the result `image`; targets are then those of a phase. */
  readonly phases?: { readonly counts: ImageSize; readonly image: ImageSize };
}

/** Launches a product, and assembles its slices where there are several. */
export function launchConvolution<B>(
  target: LaunchTarget<B>,
  plan: ProductPlan,
  out: Binding<B>,
  attributes: Conv2dAttributes,
  product: Product<B>,
): void {
  const { kernel, operands, m, n, groups } = product;
  // Without phases, the rows of a slice are handled as pixels of one line, for every image.
  const { counts, image } = product.phases ?? { counts: [1, 1], image: [1, m] };
  const slices = groups * counts[0] * counts[1];
  const launchInto = (result: Binding<B>): Launch<B> => ({
    kernel,
    bindings: [...operands, result],
    scalars: {
      m,
      n,
      columns: plan.columns,
      slices: slices * plan.splits,
      groups,
      splits: plan.splits,
      phases_y: counts[0],
      phases_x: counts[1],
      images: attributes.batch,
      target_height: product.target[0],
      target_width: product.target[1],
      source_height: product.source[0],
      source_width: product.source[1],
      channels: product.channels,
      kernel_height: attributes.kernelHeight,
      kernel_width: attributes.kernelWidth,
      stride_y: attributes.stride[0],
      stride_x: attributes.stride[1],
      padding_y: attributes.padding[0],
      padding_x: attributes.padding[1],
      dilation_y: attributes.dilation[0],
      dilation_x: attributes.dilation[1],
    },
  });
  if (slices === 1)
    launchProduct(target, plan, { out }, { batch: 1, m, n }, (results) => launchInto(results.out));
  else {
    const [height, width] = image;
    launchSlices(target, plan, out, { m, n, groups, phases: counts, height, width }, launchInto);
  }
}
