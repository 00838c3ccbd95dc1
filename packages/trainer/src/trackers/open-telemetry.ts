import type { PushMetricExporter } from "@opentelemetry/sdk-metrics";
import { type MetricsSink, recording, type Tracker } from "./metrics-sink.js";
import { failureOfPeers } from "./peer-package.js";
import { finite, type Scalars, scalarsOf, testScalars } from "./scalars.js";

/** How often metrics leave. The exporter takes its address and headers from OpenTelemetry's own environment variables. */
export interface OpenTelemetryOptions {
  /** Milliseconds between two exports. Default: `OTEL_METRIC_EXPORT_INTERVAL`, or 10 000. */
  readonly interval?: number | undefined;
  /** Milliseconds that an export may take, also the last one. Default 5000. */
  readonly patience?: number | undefined;
}

/**
 * A tracker that exports metrics by OTLP over HTTP with OpenTelemetry's SDK, which needs the packages `@opentelemetry/sdk-metrics`,
 * `@opentelemetry/exporter-metrics-otlp-http` and `@opentelemetry/resources`. Each figure is a gauge such as `halfstep.train.loss`. An
 * export has the last value of each, and `halfstep.train.step` says of which step.
 *
 * @throws MissingPackageError
 * @example
 * const sink = (await openTelemetryTracker())({ name: "digits float16", onNote: console.error });
 * await train({ …, hooks: { otel: sink } });
 * await sink.close(summary);
 */
export async function openTelemetryTracker({
  interval = Number(process.env.OTEL_METRIC_EXPORT_INTERVAL ?? 10_000),
  patience = 5000,
}: OpenTelemetryOptions = {}): Promise<Tracker> {
  const { MeterProvider, PeriodicExportingMetricReader, OTLPMetricExporter, ...resources } =
    await loadPackages();
  const { detectResources, envDetector, resourceFromAttributes } = resources;
  return ({ name, onNote }): MetricsSink => {
    const exportTimeoutMillis = Math.min(patience, interval);
    let hasFailed = false;
    const fail = (reason: string): void => {
      if (!hasFailed)
        onNote(`OpenTelemetry's metrics cannot be exported (${reason}): training goes on`);
      hasFailed = true;
    };
    class NotingExporter extends OTLPMetricExporter {
      override export(...[metrics, done]: Parameters<PushMetricExporter["export"]>): void {
        // The reader gives an export up without a word, and the exporter may wait for a connection that is closed.
        const timer = setTimeout(() => fail("it does not answer"), 0.9 * exportTimeoutMillis);
        super.export(metrics, (result) => {
          clearTimeout(timer);
          if (result.error) fail(result.error.message);
          done(result);
        });
      }
    }
    const provider = new MeterProvider({
      resource: resourceFromAttributes({ "service.name": "halfstep", "halfstep.run": name }).merge(
        detectResources({ detectors: [envDetector] }),
      ),
      readers: [
        new PeriodicExportingMetricReader({
          exporter: new NotingExporter({ timeoutMillis: exportTimeoutMillis }),
          exportIntervalMillis: interval,
          exportTimeoutMillis,
        }),
      ],
    });
    const meter = provider.getMeter("@halfstep/trainer");
    const gauges = new Map<string, ReturnType<typeof meter.createGauge>>();
    const record = (scalars: Scalars): void => {
      for (const [name, value] of Object.entries(finite(scalars))) {
        const gauge = gauges.get(name) ?? meter.createGauge(instrumentName(name));
        gauges.set(name, gauge);
        gauge.record(value);
      }
    };
    let closing: Promise<void> | undefined;
    return {
      ...recording((line) => record({ ...scalarsOf(line), "train/step": line.step })),
      close(summary) {
        if (summary && !closing) record(testScalars(summary));
        closing ??= provider.shutdown({ timeoutMillis: patience }).catch(() => {});
        return closing;
      },
    };
  };
}

async function loadPackages() {
  try {
    const { MeterProvider, PeriodicExportingMetricReader } = await import(
      "@opentelemetry/sdk-metrics"
    );
    const { OTLPMetricExporter } = await import("@opentelemetry/exporter-metrics-otlp-http");
    const resources = await import("@opentelemetry/resources");
    return { ...resources, MeterProvider, PeriodicExportingMetricReader, OTLPMetricExporter };
  } catch (error) {
    throw failureOfPeers(error, "OpenTelemetry needs", [
      "@opentelemetry/sdk-metrics",
      "@opentelemetry/exporter-metrics-otlp-http",
      "@opentelemetry/resources",
    ]);
  }
}

/** OpenTelemetry takes neither spaces nor slashes: `train/loss scale` is `halfstep.train.loss_scale`. */
const instrumentName = (name: string): string =>
  `halfstep.${name.replaceAll("/", ".").replaceAll(/[^\w.]/g, "_")}`;
