/** Bytes and seconds for people, as memviz.core.units writes them. */

export function formatBytes(nbytes: number): string {
  let size = nbytes;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (Math.abs(size) < 1024) return unit === "B" ? `${size.toFixed(0)} B` : `${size.toFixed(1)} ${unit}`;
    size /= 1024;
  }
  return `${size.toFixed(1)} TiB`;
}

export function formatSeconds(seconds: number): string {
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  return seconds >= 1e-3 ? `${(seconds * 1e3).toFixed(1)} ms` : `${(seconds * 1e6).toFixed(0)} µs`;
}
