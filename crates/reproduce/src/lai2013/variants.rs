//! The paper's claims about its own algorithm: it is close to the ideal (§V), α has little effect (§III-A), and RR-TCP
//! and TCP-DCR give results similar to TCP-PR (§III, footnote 1). `p3-rules` also shows the effect of the choices that
//! this project made in the algorithm.

use airtcp_sim::world::WorldError;

use super::comparison::{Comparison, percent_shown};
use super::goodput::TITLE;
use super::sentences::{APPROXIMATIONS, is_an_excellent_approximation, like_pr_plus};
use super::setting::{Extent, NR, PR, PR_PLUS, Plus, Radio, Scheme, Site, Variant, W};
use crate::{At, Effort, Finding, Judged, Table, claim};

/// §V: the tax rebate compared with the compensation scheme.
pub fn approximation(effort: &Effort, extent: &Extent) -> Result<Finding, WorldError> {
    let senders: Vec<_> = [NR, W].into_iter().chain(APPROXIMATIONS.into_iter().flatten()).collect();
    let comparison = Comparison::run(effort, Radio::Loses, Site::ORDINARY, &senders, extent)?;
    let [[.., ideal_newreno], _] = APPROXIMATIONS;
    let compensator_gain = |[_, ideal, differentiator]: [Variant; 3]| {
        let gains = comparison.gains_shown(ideal, differentiator);
        format!("*{}* compared with *{}*: {gains}.", ideal.name(), differentiator.name())
    };
    let mut remarks = APPROXIMATIONS.map(compensator_gain).to_vec();
    let (ours, judged) = is_an_excellent_approximation(&comparison);
    remarks.push(format!(
        "Gain of the ideal differentiator over TCP-W: {}. Where this gain is small, TCP-NR+ cannot gain much \
         over TCP-W either. NewReno is then limited by its recovery, with one retransmission per round trip, \
         and by its timeouts, but not by its window.",
        comparison.gains_shown(ideal_newreno, W)
    ));
    Ok(Finding {
        charts: vec![comparison.chart(
            "The tax rebate, the ideal compensators and the ideal differentiators (not drawn in the paper)",
            &senders,
        )],
        tables: vec![comparison.table(TITLE)],
        claims: vec![claim(
            At("§V"),
            "“A tax-rebate approach has been constructed as an excellent approximation of the compensation \
             schemes.”",
            ours,
            judged,
        )],
        remarks,
        ..Finding::default()
    })
}

/// §III-A: the parameter α, and the choices that the paper leaves open in the algorithm.
pub fn rules(effort: &Effort, extent: &Extent) -> Result<Finding, WorldError> {
    let alphas_of =
        |scheme: Scheme| [Plus::Alpha(20), Plus::Full, Plus::Alpha(30)].map(|plus| scheme.plus(plus));
    let [nr_low, nr, nr_high] = alphas_of(Scheme::NewReno);
    let [pr_low, pr, pr_high] = alphas_of(Scheme::Pr);
    let rules = [Plus::Full, Plus::Unclamped, Plus::AtTimeouts, Plus::Literal];
    let others = [Plus::Unclamped, Plus::AtTimeouts, Plus::Literal];
    let filters = [
        W,
        Scheme::WestwoodTau(100).plain(),
        Scheme::WestwoodTau(2000).plain(),
        Scheme::WestwoodConstant.plain(),
    ];
    let mut senders = vec![nr_low, nr, nr_high, pr_low, pr, pr_high];
    senders.extend(filters);
    senders.extend(others.map(|plus| Scheme::NewReno.plus(plus)));
    senders.extend(others.map(|plus| Scheme::Pr.plus(plus)));
    let comparison = Comparison::run(effort, Radio::Loses, Site::ORDINARY, &senders, extent)?;
    let alphas = [(nr_low, nr), (nr_high, nr), (pr_low, pr), (pr_high, pr)];
    let shown = |(other, ours): (Variant, Variant)| {
        format!(
            "{}: {}",
            other.name(),
            percent_shown(&comparison.pooled(other, ours, &comparison.rates(|_| true)))
        )
    };
    let mut table = Table::new(
        "Gains of the variants over TCP-W, by TCP-W's filter",
        &["sender", "τ = 0.5 s", "τ = 0.1 s", "τ = 2 s", "constant filter"],
    );
    for scheme in [Scheme::NewReno, Scheme::Pr] {
        for sender in rules.map(|plus| scheme.plus(plus)) {
            let against = filters.map(|other| comparison.gains_shown(sender, other));
            table.row([sender.name()].into_iter().chain(against));
        }
    }
    let low = comparison.rates(|percent| percent < 5);
    let never_above = |plus: &Plus| {
        let sender = Scheme::NewReno.plus(*plus);
        let is_below = |filter: &Variant| {
            Judged::better(&comparison.pooled(sender, *filter, &low)) == Judged::DoesNotHold
        };
        filters.iter().all(is_below)
    };
    let range = match rules.iter().all(never_above) {
        true => "At error rates below 5 %, no variant of TCP-NR+ is above TCP-W, with any filter",
        false => {
            "Whether TCP-NR+ is above TCP-W at error rates below 5 % depends on the variant and the filter, \
             or is undecided"
        }
    };
    Ok(Finding {
        tables: vec![table, comparison.table(TITLE)],
        claims: vec![claim(
            At("§III-A"),
            "“The results are similar when α is set to other values in the recommended range.”",
            format!("mean gain over α = 0.25: {}", alphas.map(shown).join("; ")),
            Judged::all(alphas.map(|(other, ours)| comparison.everywhere(other, ours, Judged::similar))),
        )],
        remarks: vec![format!("{range}.")],
        ..Finding::default()
    })
}

/// §III, footnote 1: RR-TCP and TCP-DCR with the rebate.
pub fn other_differentiators(effort: &Effort, extent: &Extent) -> Result<Finding, WorldError> {
    let schemes = [Scheme::Rr, Scheme::Dcr];
    let mut senders = vec![W, PR, PR_PLUS];
    senders.extend(schemes.iter().flat_map(|scheme| [scheme.plain(), scheme.plus(Plus::Full)]));
    let comparison = Comparison::run(effort, Radio::Loses, Site::ORDINARY, &senders, extent)?;
    let all = comparison.rates(|_| true);
    let (ours, judged) = like_pr_plus(&comparison);
    let gains = schemes.map(|scheme| {
        let (plain, plus) = (scheme.plain(), scheme.plus(Plus::Full));
        format!(
            "Mean gain of {} over {}: {}; over TCP-W: {}.",
            plus.name(),
            plain.name(),
            percent_shown(&comparison.pooled(plus, plain, &all)),
            percent_shown(&comparison.pooled(plus, W, &all))
        )
    });
    Ok(Finding {
        charts: vec![
            comparison.chart("RR-TCP and TCP-DCR with the rebate (not drawn in the paper)", &senders),
        ],
        tables: vec![comparison.table(TITLE)],
        claims: vec![claim(
            At("§III, footnote 1"),
            "“The related discussion and results are similar to TCP-PR+ and thus omitted due to constraints \
             in space.” (Here: RR-TCP and TCP-DCR with the rebate.)",
            ours,
            judged,
        )],
        remarks: gains.to_vec(),
        ..Finding::default()
    })
}
