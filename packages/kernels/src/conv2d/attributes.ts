/** A two-dimensional convolution (cross-correlation, as in torch) of NHWC activations with HWIO weights. */
export interface Conv2dAttributes {
  readonly batch: number;
  /** Height of the input; `width` likewise. */
  readonly height: number;
  readonly width: number;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernelHeight: number;
  readonly kernelWidth: number;
  /** Vertical and horizontal, as in the options below. */
  readonly stride: readonly [number, number];
  /** Zeros on each side. */
  readonly padding: readonly [number, number];
  readonly dilation: readonly [number, number];
  /** Groups of neighbouring channels, each convolved alone; the weight's inputs are those of one group. Default 1. */
  readonly groups?: number;
}
