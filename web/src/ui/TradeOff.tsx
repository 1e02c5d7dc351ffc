// Two metrics against each other: a point for each cell, which opens its runs.

import { useState } from "react";
import type { StudyCell, StudyResults } from "../backend/backend";
import { scaleOf, shown } from "../core/quantity";

interface Props {
  found: StudyResults;
  metrics: string[];
  /** The metric across, that of the table above. */
  across: string;
  value: (cell: StudyCell, metric: string) => number | undefined;
  unitOf: (metric: string) => string;
  open: (cell: StudyCell) => void;
}

const [WIDTH, HEIGHT, LEFT, BOTTOM, PAD] = [620, 320, 64, 40, 14];

export function TradeOff({ found, metrics, across, value, unitOf, open }: Props) {
  const [chosen, setChosen] = useState<string>();
  const down = chosen ?? metrics.find((name) => name.startsWith("rtt") && name !== across) ?? metrics.find((name) => name !== across);
  if (!down) return null;
  const points = found.cells.flatMap((cell) => {
    const [x, y] = [value(cell, across), value(cell, down)];
    return x === undefined || y === undefined ? [] : [{ cell, x, y }];
  });
  const [mostX, mostY] = [Math.max(0, ...points.map((point) => point.x)) || 1, Math.max(0, ...points.map((point) => point.y)) || 1];
  const place = (x: number, y: number) => ({
    x: LEFT + (x / mostX) * (WIDTH - LEFT - PAD),
    y: HEIGHT - BOTTOM - (y / mostY) * (HEIGHT - BOTTOM - PAD),
  });
  // One colour for each value of the first axis.
  const [axis] = Object.keys(found.axes);
  const values = (axis && found.axes[axis]) || [];
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  const said = (amount: number, most: number, unit: string) => `${Number((amount / scaleOf(unit, most).divide).toPrecision(3))}`;
  const title = (metric: string, most: number) => `${metric}, ${scaleOf(unitOf(metric), most).unit}`;
  return (
    <figure className="trade-off">
      <figcaption>
        <label>
          {across} against
          <select value={down} onChange={(event) => setChosen(event.target.value)}>
            {metrics
              .filter((name) => name !== across)
              .map((name) => (
                <option key={name}>{name}</option>
              ))}
          </select>
        </label>
        {values.map((name, index) => (
          <span key={name} className={`of-link flow-${index % 10}`}>
            <span className="swatch" aria-hidden="true" /> {name}
          </span>
        ))}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label={`${across} against ${down}`}>
        {ticks.map((share) => (
          <g key={share}>
            <line className="grid" x1={place(share * mostX, 0).x} x2={place(share * mostX, 0).x} y1={PAD} y2={HEIGHT - BOTTOM} />
            <line className="grid" x1={LEFT} x2={WIDTH - PAD} y1={place(0, share * mostY).y} y2={place(0, share * mostY).y} />
            <text x={place(share * mostX, 0).x} y={HEIGHT - BOTTOM + 14} textAnchor="middle">
              {said(share * mostX, mostX, unitOf(across))}
            </text>
            <text x={LEFT - 6} y={place(0, share * mostY).y + 4} textAnchor="end">
              {said(share * mostY, mostY, unitOf(down))}
            </text>
          </g>
        ))}
        <text x={(LEFT + WIDTH) / 2} y={HEIGHT - 6} textAnchor="middle">
          {title(across, mostX)}
        </text>
        <text transform={`translate(12 ${(HEIGHT - BOTTOM) / 2}) rotate(-90)`} textAnchor="middle">
          {title(down, mostY)}
        </text>
        {points.map(({ cell, x, y }) => {
          const label = `${Object.values(cell.labels).join(", ")}: ${across} ${shown(x, unitOf(across))}, ${down} ${shown(y, unitOf(down))}`;
          return (
            <circle
              key={cell.cell}
              className={`flow-${Math.max(0, axis ? values.indexOf(cell.labels[axis] ?? "") : 0) % 10}`}
              cx={place(x, y).x}
              cy={place(x, y).y}
              r={5}
              tabIndex={0}
              role="button"
              aria-label={label}
              onClick={() => open(cell)}
              onKeyDown={(event) => event.key === "Enter" && open(cell)}
            >
              <title>{label}</title>
            </circle>
          );
        })}
      </svg>
    </figure>
  );
}
