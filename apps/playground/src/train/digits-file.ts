/** The file of digits beside the pages: images, then labels, compressed by gzip. */
export const digitsFile = "digits.bin";

/** How many digits it has for training, and how many for testing. */
export const digitCounts = { train: 6000, test: 500 } as const;
