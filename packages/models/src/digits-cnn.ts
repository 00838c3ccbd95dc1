import {
  BatchNorm2d,
  Conv2d,
  Generator,
  Linear,
  MaxPool2d,
  Module,
  requireArguments,
} from "@halfstep/nn";
import { type Runtime, ShapeError, type Tensor } from "@halfstep/tensor/functional";

/** Options of {@link DigitsCnn}. */
export interface DigitsCnnOptions {
  /** Of the initial parameters. */
  readonly seed: number;
}

/**
 * A small convolutional network for 28×28 grey images: three times a 3×3 convolution (16, 32, 64 channels), batch
 * normalisation, 2×2 max pooling and ReLU, then a linear layer to 10 classes. 29,178 parameters. The columns of the linear layer are in the order
 * height, width, channels: its counterpart in torch permutes to channels last before it flattens.
 */
export class DigitsCnn extends Module {
  readonly conv1: Conv2d;
  readonly bn1: BatchNorm2d;
  readonly conv2: Conv2d;
  readonly bn2: BatchNorm2d;
  readonly conv3: Conv2d;
  readonly bn3: BatchNorm2d;
  readonly pool: MaxPool2d = new MaxPool2d({ kernelSize: 2 });
  readonly fc: Linear;

  constructor(runtime: Runtime, options: DigitsCnnOptions) {
    super();
    requireArguments("new DigitsCnn(runtime, { seed })", runtime, options);
    const generator = new Generator(options.seed);
    // Batch normalisation would subtract a bias again.
    const conv = (inChannels: number, outChannels: number): Conv2d =>
      new Conv2d(runtime, inChannels, outChannels, {
        kernelSize: 3,
        padding: 1,
        bias: false,
        generator,
      });
    this.conv1 = conv(1, 16);
    this.bn1 = new BatchNorm2d(runtime, 16);
    this.conv2 = conv(16, 32);
    this.bn2 = new BatchNorm2d(runtime, 32);
    this.conv3 = conv(32, 64);
    this.bn3 = new BatchNorm2d(runtime, 64);
    this.fc = new Linear(runtime, 3 * 3 * 64, 10, { generator });
  }

  /** Two images without ink. */
  override exampleInputs(): readonly [Tensor] {
    return [this.fc.weight.runtime.zeros([2, 28, 28, 1])];
  }

  /**
   * @param x [batch, 28, 28, 1]
   * @returns logits [batch, 10]
   */
  forward(x: Tensor): Tensor {
    const [batch, height, width, channels] = x.shape;
    if (x.rank !== 4 || height !== 28 || width !== 28 || channels !== 1)
      throw new ShapeError(`DigitsCnn needs an input [batch, 28, 28, 1], not [${x.shape}]`);
    // Maximum and ReLU commute: pooling first leaves ReLU a quarter of the elements.
    const block = (input: Tensor, conv: Conv2d, bn: BatchNorm2d): Tensor =>
      this.pool.forward(bn.forward(conv.forward(input))).relu();
    let y = block(x, this.conv1, this.bn1);
    y = block(y, this.conv2, this.bn2);
    y = block(y, this.conv3, this.bn3);
    return this.fc.forward(y.reshape([batch as number, -1]));
  }
}
