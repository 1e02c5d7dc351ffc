// Two metrics against each other: a point for each cell, which opens its runs.

import { useState } from "react";
import type { StudyCell, StudyResults } from "../backend/backend";
import { roundTicks, scaleOf, shown } from "../core/quantity";

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
  // Round in the unit that is written.
  const axisOf = (unit: string, values: number[]) => {
    const most = Math.max(0, ...values) || 1;
    const { divide } = scaleOf(unit, most);
    return roundTicks(most / divide).map((tick) => tick * divide);
  };
  const ticksX = axisOf(unitOf(across), points.map(({ x }) => x));
  const ticksY = axisOf(unitOf(down), points.map(({ y }) => y));
  const [mostX, mostY] = [ticksX[ticksX.length - 1]!, ticksY[ticksY.length - 1]!];
  const place = (x: number, y: number) => ({
    x: LEFT + (x / mostX) * (WIDTH - LEFT - PAD),
    y: HEIGHT - BOTTOM - (y / mostY) * (HEIGHT - BOTTOM - PAD),
  });
  // One colour for each value of the first axis.
  const [axis] = Object.keys(found.axes);
  const values = (axis && found.axes[axis]) || [];
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
        {ticksX.map((tick) => (
          <g key={`x ${tick}`}>
            <line className="grid" x1={place(tick, 0).x} x2={place(tick, 0).x} y1={PAD} y2={HEIGHT - BOTTOM} />
            <text x={place(tick, 0).x} y={HEIGHT - BOTTOM + 14} textAnchor="middle">
              {said(tick, mostX, unitOf(across))}
            </text>
          </g>
        ))}
        {ticksY.map((tick) => (
          <g key={`y ${tick}`}>
            <line className="grid" x1={LEFT} x2={WIDTH - PAD} y1={place(0, tick).y} y2={place(0, tick).y} />
            <text x={LEFT - 6} y={place(0, tick).y + 4} textAnchor="end">
              {said(tick, mostY, unitOf(down))}
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
